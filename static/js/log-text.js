/* What all parts of the log share: numbers and times as the reader writes them, remembered choices, a line's text as a screen shows
 * it, and its dress: links that are links, and characters that nobody sees made visible. Text is only ever set as text. */
(function () {
  "use strict";
  const Beamtime = (window.Beamtime = window.Beamtime || {});
  const LONGEST = 8192; // bytes shown of one line, as portal/logs/policy says; the download has all of it
  const language = document.documentElement.lang || "en";
  const number = new Intl.NumberFormat(language);
  const bytes = new TextEncoder();
  // Times of a log are the reader's own, in the zone of the browser; those around it are the site's.
  const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
  const zone = clock.resolvedOptions().timeZone;

  /** Whether a clock on the wall of the site's zone says something else than the reader's. */
  function elsewhere(words) {
    if (!words.zone || words.zone === zone) return false;
    const now = Date.now();
    const wall = (timeZone) => new Intl.DateTimeFormat("en-GB", { dateStyle: "short", timeStyle: "medium", timeZone }).format(now);
    return wall(words.zone) !== wall(zone);
  }

  /** A time with its zone, where it could be taken for the site's. */
  function zoned(time, words) {
    return elsewhere(words) ? `${time} ${zone}` : time;
  }

  /** The button of the times says whose they are. */
  function nameTimes(card) {
    const words = card.dataset;
    const said = (elsewhere(words) ? words.wordsTimesElsewhere : words.wordsTimes).replace("{zone}", zone).replace("{site}", words.zone);
    const button = card.querySelector("[data-log-times]");
    if (!button) return;
    button.title = said;
    button.setAttribute("aria-label", said);
  }

  /** What a screen shows of a line, as `policy.display_text` does it; the socket and the page send lines that went through that. */
  function shown(text, words) {
    let line = text.replace(/\r+$/, "");
    const start = line.lastIndexOf("\r") + 1;
    if (start) line = colours(line.slice(0, start)) + line.slice(start);
    line = line.replaceAll("\0", "␀");
    if (line.length * 4 <= LONGEST) return line;
    const raw = bytes.encode(line);
    if (raw.length <= LONGEST) return line;
    let head = new TextDecoder().decode(raw.subarray(0, LONGEST - 48), { stream: true });
    head = head.replace(/\x1b(?:\[[0-9;?]*)?$/, "");
    return head + words.replace("{n}", number.format(raw.length - bytes.encode(head).length));
  }

  function colours(hidden) {
    const codes = hidden.match(/\x1b\[[0-9;]*m/g) || [];
    const reset = codes.findLastIndex((code) => /^\x1b\[(?:0*;)*0*m$/.test(code));
    return codes.slice(Math.max(0, reset)).slice(-16).join("");
  }

  // Marks that turn the direction of writing, and characters without a width: shown by their number, so that no line says one
  // thing to the eye and another to whoever copies it. Joiners inside words and emoji are left alone.
  const SIGNS = /[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
  const LINKS = /\bhttps?:\/\/[^\s<>"'`\\^{|}\u2026\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g;
  const ANY = new RegExp(`${SIGNS.source}|https?://`, "u");

  function sign(character) {
    const mark = document.createElement("span");
    mark.className = "bt-log-sign";
    mark.textContent = `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    return mark;
  }

  /** The end of a sentence is not the end of a link; a bracket is part of it only if it was opened in it. */
  function trimmed(link) {
    let text = link;
    for (;;) {
      const last = text.at(-1);
      const open = { ")": "(", "]": "[" }[last];
      if (/[.,;:!?*_]/.test(last) || (open && text.split(open).length < text.split(last).length)) text = text.slice(0, -1);
      else return text;
    }
  }

  function anchor(text) {
    let url;
    try { url = new URL(text); } catch { return null; }
    if (url.protocol !== "http:" && url.protocol !== "https:") return null;
    const link = document.createElement("a");
    link.className = "bt-log-link";
    link.href = url.href;
    link.rel = "noopener noreferrer nofollow";
    link.target = "_blank";
    link.textContent = text;
    return link;
  }

  function cut(text, pattern, make) {
    const parts = [];
    let done = 0;
    for (const match of text.matchAll(pattern)) {
      const [node, length] = make(match[0]);
      if (!node) continue;
      if (match.index > done) parts.push(document.createTextNode(text.slice(done, match.index)));
      parts.push(node);
      done = match.index + length;
    }
    if (!parts.length) return null;
    if (done < text.length) parts.push(document.createTextNode(text.slice(done)));
    return parts;
  }

  function replaceIn(root, pattern, make) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (const node of nodes) {
      const parts = node.parentNode.className === "bt-log-sign" ? null : cut(node.data, pattern, make);
      if (parts) node.replaceWith(...parts);
    }
  }

  /** A painted line, with its links and signs. Changes and returns `fragment`. */
  function dressed(fragment) {
    if (!ANY.test(fragment.textContent)) return fragment;
    replaceIn(fragment, SIGNS, (found) => [sign(found), found.length]);
    replaceIn(fragment, LINKS, (found) => {
      const text = trimmed(found);
      return [anchor(text), text.length];
    });
    return fragment;
  }

  function remember(name, value, place = "localStorage") {
    try { window[place].setItem(name, value); } catch { /* a private window keeps nothing */ }
  }
  function remembered(name, otherwise, place = "localStorage") {
    try { return window[place].getItem(name) || otherwise; } catch { return otherwise; }
  }

  /** JSON by plain GET. `null`: it is no longer open to the reader, and the page says so. Throws without an answer. */
  async function json(url, signal) {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin", signal });
    if (answer.status === 404 || answer.status === 403) {
      Beamtime.jobClosed?.();
      return null;
    }
    if ([400, 410, 422, 500, 503].includes(answer.status)) return { refused: await answer.json() };
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function icon(name) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "bt-icon");
    svg.setAttribute("aria-hidden", "true");
    const sprite = document.querySelector("svg.bt-icon use")?.getAttribute("href")?.split("#")[0] || "";
    svg.appendChild(document.createElementNS(svg.namespaceURI, "use")).setAttribute("href", `${sprite}#${name}`);
    return svg;
  }

  Beamtime.logText = { language, number, clock, zoned, nameTimes, shown, dressed, remember, remembered, json, element, icon };
})();
