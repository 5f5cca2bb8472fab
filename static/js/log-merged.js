/* All logs of a job as one, in the order of time: a bounded window that grows at either end by a cursor of the server's. Text only
 * ever as text. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { number, clock, nameTimes, shown, dressed, json, element, remember, remembered } = Beamtime.logText;
  const ROWS = 2500;
  const PAGE = 500;
  const NEAR = 800;
  const COLOURS = 6;
  const LIVE = 1000; // milliseconds between two looks at the end
  const BEHIND = 5000; // and while nothing comes

  const card = document.querySelector("[data-merged]");
  if (!card) return;
  const words = card.dataset;
  const box = card.querySelector(".bt-log");
  const boxes = [...card.querySelectorAll("[data-log-pick] input")];
  const level = card.querySelector("[data-log-level]");
  const follow = card.querySelector("[data-log-follow] input");
  const tags = new Map(boxes.map((input, place) => [input.value, [input.dataset.tag, place % COLOURS]]));
  const rows = document.createElement("div");
  const missing = card.querySelector("[data-log-missing]");
  const painters = new Map(); // colours carry on within a stream, not from one to another
  let cursor = { atStart: words.atStart === "yes", atEnd: true, complete: words.complete === "yes" };
  let blocks = [];
  let version = 0;
  let busy = false;
  let following = true;
  let idle = 0;
  let heard = 0;

  function rank(s, streams) {
    const [tag, colour] = tags.get(streams[s]) || [String(s), s % COLOURS];
    return element("span", `bt-log-rank is-rank-${colour}`, tag);
  }

  function gap(text, s, streams) {
    const made = element("div", "bt-log-gap");
    made.append(rank(s, streams), element("span", "bt-log-num", words.wordsGap), element("span", "bt-log-gap-text", text));
    return made;
  }

  function row(line, streams, painter) {
    const made = element("div", `bt-log-row is-${line.level}`);
    made.dataset.t = Date.parse(line.t);
    made.dataset.of = streams[line.s];
    made.classList.toggle("has-gap", line.gaps.length > 0);
    made.append(...line.gaps.map((text) => gap(text, line.s, streams)));
    const at = element("a", "bt-log-num", number.format(line.n));
    at.href = `?stream=${streams[line.s]}&from=${line.n}`;
    made.append(rank(line.s, streams), at);
    made.append(element("span", "bt-log-time", clock.format(Number(made.dataset.t))));
    made.appendChild(element("span", "bt-log-text")).append(dressed(painter.line(shown(line.text, words.wordsMore))));
    return made;
  }

  function query(direction, from) {
    const asked = new URLSearchParams({ direction, limit: PAGE, level: level.value });
    if (from) asked.set("cursor", from);
    const picked = boxes.filter((input) => input.checked).map((input) => input.value);
    if (words.only) asked.set("streams", words.only);
    else if (picked.length < boxes.length) asked.set("streams", picked.join(","));
    return `${words.linesUrl}?${asked}`;
  }

  async function read(direction, from) {
    const mine = version;
    const page = await json(query(direction, from));
    // A cursor of the portal as it was before an update: begin again with one of now.
    if (from && page?.refused?.status === 422) setTimeout(again);
    return mine === version && page?.lines ? page : null;
  }

  function drawn(page, painter) {
    const made = document.createDocumentFragment();
    for (const line of page.lines) made.append(row(line, page.streams, painter(page.streams[line.s])));
    return made;
  }

  async function once(work) {
    if (busy || Beamtime.closed) return;
    busy = true;
    try { await work(); } catch { /* the next scroll or turn tries again */ } finally { busy = false; }
  }

  // The window is a row of blocks, each between two cursors: what is dropped at one end is read again by the cursor of its neighbour.
  const count = () => blocks.reduce((sum, block) => sum + block.node.childElementCount, 0);
  const painterOf = (map) => (stream) => map.get(stream) || map.set(stream, new Beamtime.LogPainter()).get(stream);

  const earlier = () => once(async () => {
    if (cursor.atStart) return;
    const page = await read("backward", blocks[0].before);
    if (!page) return;
    if (!page.lines.length) {
      Object.assign(cursor, { atStart: page.at_start });
      blocks[0].before = page.before;
      return;
    }
    const height = box.scrollHeight;
    const node = document.createElement("div");
    node.append(drawn(page, painterOf(new Map())));
    rows.prepend(node);
    blocks.unshift({ node, before: page.before, after: page.after });
    box.scrollTop += box.scrollHeight - height;
    cursor.atStart = page.at_start;
    while (count() > ROWS && blocks.length > 1) {
      blocks.pop().node.remove();
      cursor.atEnd = false;
      missing.replaceChildren();
    }
    say();
  });

  const later = () => once(async () => {
    const last = blocks[blocks.length - 1];
    const page = await read("forward", last.after);
    if (!page) return;
    Object.assign(cursor, { atEnd: page.at_end, complete: page.complete });
    lost(page);
    idle = page.lines.length ? 0 : idle + 1;
    if (page.lines.length) {
      for (const empty of card.querySelectorAll(".bt-log-empty")) empty.hidden = true;
      if (last.node.childElementCount + page.lines.length <= PAGE) last.node.append(drawn(page, painterOf(painters)));
      else {
        const node = rows.appendChild(document.createElement("div"));
        node.append(drawn(page, painterOf(painters)));
        blocks.push({ node, before: page.before, after: page.after });
      }
      if (!following) heard += page.lines.length;
    }
    blocks[blocks.length - 1].after = page.after;
    while (count() > ROWS && blocks.length > 1) {
      const height = box.scrollHeight;
      blocks.shift().node.remove();
      cursor.atStart = false;
      if (!following) box.scrollTop -= height - box.scrollHeight;
    }
    if (following) toEnd();
    say();
    if (following && !page.at_end) setTimeout(later);
  });

  /** What is missing behind the last line of a log stands below all lines, while those are there. */
  function lost(page) {
    missing.replaceChildren(...page.missing.map((one) => gap(one.words, one.s, page.streams)));
  }

  function toEnd() {
    box.scrollTop = box.scrollHeight;
  }

  /** From the end, with other choices or after reading far above. */
  async function again() {
    version += 1;
    busy = false;
    await once(async () => {
      const page = await read("backward");
      if (!page) return;
      rows.replaceChildren();
      none.hidden = true;
      for (const empty of card.querySelectorAll(".bt-log-empty")) if (empty !== none) empty.remove();
      painters.clear();
      const node = rows.appendChild(document.createElement("div"));
      node.append(drawn(page, painterOf(painters)));
      blocks = [{ node, before: page.before, after: page.after }];
      cursor = { atStart: page.at_start, atEnd: true, complete: page.complete };
      lost(page);
      setFollow(true);
    });
    await filled();
    if (following) toEnd();
  }

  /** Of some kinds of lines an answer may hold none, although there are some further up. */
  async function filled() {
    const mine = version;
    let before = "";
    while (mine === version && !cursor.atStart && blocks[0].before !== before && box.scrollHeight <= box.clientHeight) {
      before = blocks[0].before;
      await earlier();
    }
    none.hidden = !cursor.atStart || count() > 0;
  }

  function setFollow(on) {
    following = on;
    follow.checked = on;
    heard = 0;
    if (on && !cursor.atEnd) again();
    else if (on) toEnd();
    say();
  }

  const none = element("p", "bt-log-empty", words.only ? words.wordsNoLinesAlone : words.wordsNoLines);
  none.hidden = true;
  const more = element("div", "bt-log-more");
  more.appendChild(element("button", "bt-btn bt-btn--small")).type = "button";
  more.firstChild.addEventListener("click", () => setFollow(true));
  card.querySelector(".bt-log-frame").append(more);

  function say() {
    more.hidden = following || (!heard && cursor.atEnd);
    if (!heard) more.firstChild.textContent = words.wordsToEnd;
    else more.firstChild.textContent = heard === 1 ? words.wordsNewOne : words.wordsNew.replace("{n}", number.format(heard));
    card.querySelector("[data-log-follow]").hidden = cursor.complete;
    card.querySelector("[data-log-count]").textContent = words.wordsShown.replace("{n}", number.format(count()));
  }

  function toggle(name, otherwise, act) {
    const button = card.querySelector(`[data-log-${name}]`);
    let on = remembered(`bt-log-${name}`, otherwise) === "on";
    const set = () => {
      button.setAttribute("aria-pressed", String(on));
      act(on);
    };
    button.hidden = false;
    set();
    button.addEventListener("click", () => {
      on = !on;
      remember(`bt-log-${name}`, on ? "on" : "off");
      set();
      if (following) toEnd();
    });
    return button;
  }

  const first = [...box.querySelectorAll(".bt-log-row")];
  for (const made of first) {
    const text = made.querySelector(".bt-log-text");
    const painter = painterOf(painters)(made.dataset.of);
    text.replaceChildren(dressed(painter.line(text.textContent)));
    made.querySelector(".bt-log-time").textContent = clock.format(Number(made.dataset.t));
  }
  const begin = rows.appendChild(document.createElement("div"));
  begin.append(...first);
  blocks = [{ node: begin, before: words.before, after: words.after }];
  box.append(none, rows, missing);
  for (const node of card.querySelectorAll("[data-log-noscript]")) node.hidden = true;
  const pick = card.querySelector("[data-log-pick]");
  if (pick) pick.hidden = false;
  nameTimes(card);
  toggle("times", "off", (on) => box.classList.toggle("has-times", on));
  const wrap = toggle("wrap", "on", (on) => box.classList.toggle("is-nowrap", !on));
  function levelChosen() {
    if (words.only && level.value === "all") {
      location.href = words.allUrl;
      return;
    }
    const asked = new URLSearchParams(location.search);
    asked.set("level", level.value);
    history.replaceState(history.state, "", `${location.pathname}?${asked}`);
    again();
  }
  level.addEventListener("change", levelChosen);
  pick?.addEventListener("change", again);
  follow.addEventListener("change", () => setFollow(follow.checked));
  box.addEventListener("wheel", (event) => event.deltaY < 0 && following && setFollow(false), { passive: true });
  box.addEventListener("keydown", (event) => ["PageUp", "ArrowUp"].includes(event.key) && following && setFollow(false));
  box.addEventListener("scroll", () => {
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    if (box.scrollTop < NEAR && !following) earlier();
    else if (below < NEAR && !following && !cursor.atEnd) later();
    if (following && below > 200) setFollow(false);
    else if (!following && below < 4 && cursor.atEnd && !cursor.complete) setFollow(true);
  }, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (!Beamtime.keysFree?.(event)) return;
    if (event.key === "f") setFollow(!following);
    else if (event.key === "w") wrap.click();
    else return;
    event.preventDefault();
  });
  setFollow(true);
  // The choice may have been changed before this script was there.
  if (level.value !== words.level) levelChosen();
  else if (level.value !== "all") filled();
  (function turn() {
    if (Beamtime.closed || cursor.complete) return;
    setTimeout(async () => {
      // Who reads far above has the end out of the window; it is read when they come down again.
      if (!document.hidden && cursor.atEnd && (following || count() < ROWS - PAGE)) await later();
      turn();
    }, idle > 10 ? BEHIND : LIVE);
  })();
})();
