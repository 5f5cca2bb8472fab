/* Marks of what is searched, in the rows of the window. Plain text is found here; where a regular expression has its hits the server
 * says: its rules are not the browser's, and no expression may hang the page. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { json } = Beamtime.logText;
  const WAIT = 120;

  function plain(search) {
    const words = search.field.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const pattern = new RegExp(words, search.pressed("case") ? "gu" : "giu");
    return (text) => [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]);
  }

  function unmark(row) {
    const text = row.querySelector(".bt-log-text");
    for (const mark of text.querySelectorAll("mark")) mark.replaceWith(...mark.childNodes);
    text.normalize();
    row.classList.remove("is-hit");
  }

  /** Wrap the characters [begin, end) of a row's text, across colours. */
  function wrap(text, begin, end) {
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    let at = 0;
    const parts = [];
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const from = Math.max(begin - at, 0);
      const to = Math.min(end - at, node.length);
      if (from < to) parts.push([node, from, to]);
      at += node.length;
      if (at >= end) break;
    }
    for (const [node, from, to] of parts) {
      const piece = from ? node.splitText(from) : node;
      if (to - from < piece.length) piece.splitText(to - from);
      const mark = document.createElement("mark");
      piece.replaceWith(mark);
      mark.append(piece);
    }
  }

  function put(row, spans) {
    if (!spans.length) return;
    row.classList.add("is-hit");
    const text = row.querySelector(".bt-log-text");
    for (const [begin, end] of spans.slice(0, 200).reverse()) wrap(text, begin, end);
  }

  /** Positions in characters, as the server counts, as positions in UTF-16, as the page does. */
  function units(text, spans) {
    if (!/[\ud800-\udfff]/.test(text)) return spans;
    const starts = [0];
    for (const character of text) starts.push(starts[starts.length - 1] + character.length);
    return spans.map(([begin, end]) => [starts[begin] ?? text.length, starts[end] ?? text.length]);
  }

  function current(log, search) {
    log.rows.querySelector(".is-now")?.classList.remove("is-now");
    log.rowOf(search.now)?.classList.add("is-now");
  }

  async function fetchSpans(log, search, from, to) {
    const version = search.version;
    const found = await json(`${search.url}?${search.asked}&from=${from}&to=${to}`);
    if (!found?.marks || version !== search.version) return;
    for (let n = from; n < to; n += 1) {
      const row = log.rowOf(n);
      if (!row || row.sought !== version) continue;
      const text = row.querySelector(".bt-log-text").textContent;
      put(row, units(text, found.marks[n] || []));
    }
    current(log, search);
  }

  Beamtime.logMarks = function (log, search) {
    const { version } = search;
    const find = search.on && !search.pressed("regex") ? plain(search) : null;
    let low = Infinity;
    let high = 0;
    let n = log.first;
    for (const row of log.rows.children) {
      if (row.sought !== version) {
        if (row.sought) unmark(row);
        row.sought = search.on ? version : 0;
        if (find) put(row, find(row.querySelector(".bt-log-text").textContent));
        low = Math.min(low, n);
        high = n + 1;
      }
      n += 1;
    }
    current(log, search);
    if (!search.on || find || high <= low) return;
    // Several changes in a short time are one question.
    search.markFrom = Math.min(search.markVersion === version ? search.markFrom : Infinity, low);
    search.markTo = Math.max(search.markVersion === version ? search.markTo : 0, high);
    search.markVersion = version;
    clearTimeout(search.marking);
    search.marking = setTimeout(() => {
      search.markVersion = 0;
      if (version === search.version) fetchSpans(log, search, search.markFrom, search.markTo).catch(() => {});
    }, WAIT);
  };
})();
