/* A log that is read live by line number. The page brings the last lines as text; this script colours them, opens the stream's
 * socket from the next number on, and keeps a bounded window of rows between two spacers, so that the scroll bar stands for the
 * whole log. What is outside the window is fetched by number, so no line is out of reach. Text is only ever set as text.
 *
 *   first ... next ... known      rows [first, next) are in the page; lines exist up to and without `known`
 */
(function () {
  "use strict";
  const Beamtime = (window.Beamtime = window.Beamtime || {});
  const ROWS = 2000; // rows kept in the page
  const PAGE = 500; // lines asked for at once
  const NEAR = 800; // pixels from the window's edge at which more is fetched
  const TALLEST = 6000000; // pixels; browsers draw nothing beyond some ten millions
  const LONGEST = 8192; // bytes shown of one line, as portal/logs/policy.py says; the download has all of it
  const WITHOUT_SOCKET = 2000;
  const number = new Intl.NumberFormat(document.documentElement.lang || "en");
  const bytes = new TextEncoder();

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

  function remember(name, on) {
    try { localStorage.setItem(name, on ? "on" : "off"); } catch { /* a private window keeps nothing */ }
  }
  function remembered(name, otherwise) {
    try { return (localStorage.getItem(name) || otherwise) === "on"; } catch { return otherwise === "on"; }
  }

  class Log {
    constructor(card) {
      const words = card.dataset;
      Object.assign(this, {
        card,
        words,
        box: card.querySelector(".bt-log"),
        painter: new Beamtime.LogPainter(),
        first: Number(words.first),
        next: Number(words.next),
        known: Number(words.end),
        complete: words.complete === "yes",
        following: false,
        buffer: [], // lines from `next` on that are not drawn yet
        open: "",
        heard: Number(words.end), // what was known when following ended
        chosen: 0,
        tries: 0,
        lastTop: 0,
      });
      this.clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: words.zone || undefined });
      this.build();
      this.controls();
      // A finished log opens at its end too, and has nothing to follow then.
      if (location.hash.startsWith("#L")) this.goToHash();
      else this.follow(true);
      if (!this.complete || this.next < this.known) this.connect();
      this.draw();
    }

    /** The server's rows, dressed, between two spacers. */
    build() {
      for (const node of this.card.querySelectorAll("[data-log-noscript]")) node.hidden = true;
      const rows = [...this.box.querySelectorAll(".bt-log-row[id]")];
      this.open = this.box.querySelector(".is-open .bt-log-text")?.textContent || "";
      this.empty = this.box.querySelector(".bt-log-empty");
      const part = () => this.box.appendChild(document.createElement("div"));
      this.box.replaceChildren();
      this.above = part();
      this.rows = part();
      this.tail = part(); // the unfinished line, or the note at the end
      this.below = part();
      if (this.empty) this.tail.append(this.empty);
      this.unit = parseFloat(getComputedStyle(this.box).lineHeight) || 19;
      for (const row of rows) {
        const text = row.querySelector(".bt-log-text");
        text.replaceChildren(this.painter.line(text.textContent));
        this.time(row, Number(row.dataset.t));
      }
      this.rows.append(...rows);
      this.more = this.makeMore();
    }

    time(row, ms) {
      const spot = row.querySelector(".bt-log-time");
      spot.textContent = Number.isNaN(ms) ? "" : this.clock.format(ms);
      spot.title = Number.isNaN(ms) ? "" : new Date(ms).toISOString();
      row.dataset.t = ms;
    }

    row(n, ms, text, painter) {
      const row = document.createElement("div");
      row.className = n === this.chosen ? "bt-log-row is-chosen" : "bt-log-row";
      row.id = `L${n}`;
      const link = row.appendChild(document.createElement("a"));
      link.className = "bt-log-num";
      link.href = `#L${n}`;
      link.textContent = number.format(n);
      row.appendChild(document.createElement("span")).className = "bt-log-time";
      const words = row.appendChild(document.createElement("span"));
      words.className = "bt-log-text";
      words.append(painter.line(text));
      this.time(row, ms);
      return row;
    }

    // --- Lines come in ------------------------------------------------------------------------------------------------

    /** Whether the window, with what is about to be drawn, reaches the end. */
    attached() {
      return this.next + this.buffer.length === this.known;
    }

    /** Lines [[n, ms, text], …] of `[from, to)`. Those known already are passed over; a hole is asked for again. */
    take(from, to, lines, open) {
      if (from > this.known) {
        this.socket?.close();
        return;
      }
      if (this.attached()) {
        for (const line of lines) if (line[0] >= this.known) this.buffer.push(line);
        // A reader who follows a fast log sees its end; what is skipped is above, by number.
        if (this.buffer.length > ROWS) {
          this.buffer = this.following ? this.buffer.slice(-ROWS) : this.buffer.slice(0, ROWS);
        }
      }
      this.known = Math.max(this.known, to);
      if (open !== undefined) this.open = open || "";
      this.draw();
    }

    /** Once per frame at most; a hidden tab draws when it is looked at again. */
    draw() {
      if (this.drawing) return;
      this.drawing = requestAnimationFrame(() => {
        this.drawing = 0;
        this.drawNow();
      });
    }

    drawNow() {
      const room = this.following ? ROWS : ROWS - this.rows.childElementCount;
      if (this.buffer.length) {
        if (this.buffer[0][0] > this.next) this.clear(this.buffer[0][0]);
        this.append(this.buffer.slice(0, Math.max(0, room)));
        this.buffer = [];
        if (this.following) this.trimTop();
      }
      this.drawTail();
      this.space();
      this.say();
      if (this.following) {
        this.toEnd();
        if (this.next < this.known) this.catchUp();
        else if (this.complete) this.following = false;
      } else if (this.rows.childElementCount === 0) {
        this.load();
      }
    }

    append(lines) {
      if (!lines.length) return;
      const rows = document.createDocumentFragment();
      for (const [n, ms, text] of lines) rows.append(this.row(n, ms, text, this.painter));
      this.rows.append(rows);
      this.next = lines[lines.length - 1][0] + 1;
    }

    clear(at) {
      this.rows.replaceChildren();
      this.painter = new Beamtime.LogPainter();
      this.first = this.next = at;
    }

    trimTop() {
      for (let over = this.rows.childElementCount - ROWS; over > 0; over -= 1) this.rows.firstElementChild.remove();
      this.first = this.next - this.rows.childElementCount;
    }

    trimBottom() {
      const over = this.rows.childElementCount - ROWS;
      if (over <= 0) return;
      for (let left = over; left > 0; left -= 1) this.rows.lastElementChild.remove();
      this.next = this.first + this.rows.childElementCount;
      this.buffer = [];
      this.painter = new Beamtime.LogPainter();
    }

    /** The unfinished line in its place, or that nothing follows; only where the window reaches the end. */
    drawTail() {
      const atEnd = this.next === this.known;
      if (this.known > 1 || this.open) this.empty?.remove();
      else if (this.empty && this.complete) this.empty.textContent = this.words.wordsNone;
      if (this.open && atEnd && !this.complete) {
        const row = this.tail.querySelector(".is-open") || this.tail.appendChild(this.blank("is-open"));
        row.firstElementChild.textContent = number.format(this.known);
        // Painted apart: the colours of an unfinished line must not run into the next one.
        row.lastElementChild.replaceChildren(new Beamtime.LogPainter().line(this.open));
      } else {
        this.tail.querySelector(".is-open")?.remove();
      }
      const note = this.tail.querySelector(".bt-log-row--note");
      if (!this.complete || !atEnd || this.known === 1) {
        note?.remove();
      } else if (!note) {
        this.tail.appendChild(this.blank("bt-log-row--note")).lastElementChild.textContent = this.words.wordsEnd;
      }
    }

    blank(name) {
      const row = document.createElement("div");
      row.className = `bt-log-row ${name}`;
      for (const part of ["num", "time", "text"]) {
        row.appendChild(document.createElement("span")).className = `bt-log-${part}`;
      }
      return row;
    }

    /** Spacers as high as the lines outside the window would be, were each one row. */
    space() {
      const unit = Math.min(this.unit, TALLEST / this.known);
      this.above.style.height = `${Math.round((this.first - 1) * unit)}px`;
      this.below.style.height = `${Math.round((this.known - this.next) * unit)}px`;
      return unit;
    }

    // --- The window moves -----------------------------------------------------------------------------------------------

    async read(from, limit) {
      const answer = await fetch(`${this.words.linesUrl}?from=${from}&limit=${limit}`, {
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      if (answer.status === 404 || answer.status === 403) {
        this.gone();
        return null;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const page = await answer.json();
      page.rows = page.lines.map((line) => [line.n, Date.parse(line.t), shown(line.text, this.words.wordsMore)]);
      this.known = Math.max(this.known, page.to);
      return page;
    }

    /** One read at a time; when it is done, whatever the reader has scrolled to meanwhile is looked at again. */
    async once(work) {
      if (this.loading) return;
      this.loading = true;
      try {
        await work();
      } catch {
        return; // the live mark speaks for the connection; the next scroll or message tries again
      } finally {
        this.loading = false;
      }
      this.load();
    }

    /** Fetch what is missing for what is in view. */
    load() {
      if (this.loading || Beamtime.closed) return;
      const top = this.box.scrollTop;
      const bottom = top + this.box.clientHeight;
      const begin = this.above.offsetHeight;
      const end = begin + this.rows.offsetHeight;
      clearTimeout(this.jumping);
      if (bottom < begin - NEAR || (top > end + NEAR && this.next < this.known)) {
        // Dragged far away: wait for the hand to come to rest.
        this.jumping = setTimeout(() => this.showAt(this.lineAt(top)), 100);
      } else if (top < begin + NEAR && this.first > 1) {
        this.earlier();
      } else if (bottom > end - NEAR && this.next < this.known && !this.following) {
        this.later();
      }
    }

    lineAt(top) {
      const unit = this.space();
      const end = this.above.offsetHeight + this.rows.offsetHeight;
      const line = top < end ? Math.floor(top / unit) + 1 : this.next + Math.floor((top - end) / unit);
      return Math.max(1, Math.min(line, this.known - 1));
    }

    /** Change rows without moving what is being read. */
    holding(change) {
      const anchor = this.topRow();
      const before = anchor?.getBoundingClientRect().top;
      change();
      this.drawTail();
      this.space();
      if (anchor?.isConnected) this.box.scrollTop += anchor.getBoundingClientRect().top - before;
      this.lastTop = this.box.scrollTop;
      this.say();
    }

    topRow() {
      const rows = this.rows.children;
      const edge = this.box.getBoundingClientRect().top;
      let low = 0;
      let high = rows.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (rows[middle].getBoundingClientRect().bottom > edge) high = middle;
        else low = middle + 1;
      }
      return rows[low];
    }

    earlier() {
      return this.once(async () => {
        const from = Math.max(1, this.first - PAGE);
        const page = await this.read(from, this.first - from);
        if (!page?.rows.length || page.to > this.first) return;
        // A page of long lines ends early: the lines next to the window are then fetched one by one from where it ended.
        while (page.to < this.first) {
          const rest = await this.read(page.to, this.first - page.to);
          if (!rest?.rows.length) return;
          page.rows.push(...rest.rows);
          page.to = rest.to;
        }
        this.holding(() => {
          const rows = document.createDocumentFragment();
          const painter = new Beamtime.LogPainter();
          for (const [n, ms, text] of page.rows) rows.append(this.row(n, ms, text, painter));
          this.rows.prepend(rows);
          this.first = from;
          if (!this.following) this.trimBottom();
        });
      });
    }

    later() {
      return this.once(async () => {
        const page = await this.read(this.next, PAGE);
        if (!page?.rows.length || page.from !== this.next) return;
        this.holding(() => {
          this.append(page.rows);
          this.trimTop();
        });
      });
    }

    /** For who follows: from the window's end to the log's, or only its last lines when that is far. */
    catchUp() {
      return this.once(async () => {
        while (this.following && this.next < this.known && !this.buffer.length) {
          const from = this.known - this.next > ROWS ? this.known - PAGE : this.next;
          const page = await this.read(from, PAGE);
          if (!page?.rows.length || !this.following) return;
          if (page.from !== this.next) this.clear(page.from);
          this.append(page.rows);
          this.trimTop();
        }
        this.draw();
      });
    }

    /** Show line `n`, whatever is shown now; at the top of the box, or in its middle if it was chosen. */
    async showAt(n, { middle = false } = {}) {
      if (n < this.first || n >= this.next) {
        await this.once(async () => {
          const page = await this.read(Math.max(1, n - 100), PAGE);
          if (!page) return;
          this.buffer = [];
          this.clear(page.from);
          this.append(page.rows);
          this.drawTail();
          this.space();
          this.scrollTo(n, middle);
          this.say();
        });
      } else {
        this.scrollTo(n, middle);
      }
    }

    scrollTo(n, middle) {
      const row = document.getElementById(`L${n}`);
      if (!row) return;
      const edge = row.getBoundingClientRect().top - this.box.getBoundingClientRect().top;
      this.box.scrollTop += middle ? edge - (this.box.clientHeight - row.offsetHeight) / 2 : edge;
      this.lastTop = this.box.scrollTop;
    }

    choose(n) {
      const line = Math.max(1, Math.min(n, this.known - 1));
      this.follow(false);
      this.rows.querySelector(".is-chosen")?.classList.remove("is-chosen");
      this.chosen = line;
      document.getElementById(`L${line}`)?.classList.add("is-chosen");
      return this.showAt(line, { middle: true });
    }

    goToHash() {
      const found = /^#L(\d{1,15})$/.exec(location.hash);
      if (found) this.choose(Number(found[1]));
    }

    // --- Following --------------------------------------------------------------------------------------------------------

    follow(on) {
      this.following = on;
      this.heard = this.known;
      const box = this.card.querySelector("[data-log-follow] input");
      if (box) box.checked = on;
      if (on) this.draw();
      this.say();
    }

    toEnd() {
      this.box.scrollTop = this.box.scrollHeight;
      this.lastTop = this.box.scrollTop;
    }

    makeMore() {
      const strip = document.createElement("div");
      strip.className = "bt-log-more";
      strip.hidden = true;
      const button = strip.appendChild(document.createElement("button"));
      button.type = "button";
      button.className = "bt-btn bt-btn--small";
      button.addEventListener("click", () => {
        this.follow(true);
        this.box.focus({ preventScroll: true });
      });
      this.card.querySelector(".bt-log-frame").append(strip);
      return strip;
    }

    say() {
      const waiting = this.following ? 0 : this.known - this.heard;
      const { wordsNew, wordsNewOne, wordsComplete, wordsHere, wordsLast, trouble } = this.words;
      this.more.hidden = waiting <= 0;
      if (waiting > 0) {
        this.more.firstChild.textContent = waiting === 1 ? wordsNewOne : wordsNew.replace("{n}", number.format(waiting));
      }
      const count = this.card.querySelector("[data-log-count]");
      const said = (this.complete ? wordsComplete : wordsHere).replace("{n}", number.format(this.known - 1));
      if (count.lastChild.textContent !== said) count.lastChild.textContent = said;
      if (trouble) count.querySelector("svg")?.remove();
      const last = this.next === this.known ? this.rows.lastElementChild : null;
      if (last) {
        const time = last.querySelector(".bt-log-time").textContent;
        this.card.querySelector("[data-log-last]").textContent = time && `· ${wordsLast.replace("{time}", time)}`;
      }
      const follow = this.card.querySelector("[data-log-follow]");
      if (follow) follow.hidden = this.complete;
    }

    // --- Hands ------------------------------------------------------------------------------------------------------------

    controls() {
      this.toggle("times", "off", (on) => this.box.classList.toggle("has-times", on));
      this.wrap = this.toggle("wrap", "on", (on) => this.box.classList.toggle("is-nowrap", !on));
      this.card.querySelector("[data-log-follow] input")?.addEventListener("change", (event) => this.follow(event.target.checked));
      this.line = this.card.querySelector("#log-line");
      if (this.line) {
        this.line.hidden = false;
        this.line.addEventListener("keydown", (event) => this.lineKey(event));
      }
      this.card.addEventListener("change", (event) => {
        if (event.target.id === "log-stream") event.target.form.requestSubmit();
      });
      this.box.addEventListener("scroll", () => this.scrolled(), { passive: true });
      // A hand that turns upwards ends following at once: in a fast log the next line would pull the box down again first.
      this.box.addEventListener("wheel", (event) => event.deltaY < 0 && this.handUp(), { passive: true });
      this.box.addEventListener("keydown", (event) => ["PageUp", "ArrowUp"].includes(event.key) && this.handUp());
      window.addEventListener("hashchange", () => this.goToHash());
      document.addEventListener("keydown", (event) => this.key(event));
    }

    toggle(name, otherwise, act) {
      const button = this.card.querySelector(`[data-log-${name}]`);
      const set = (on) => {
        button.setAttribute("aria-pressed", String(on));
        act(on);
      };
      button.hidden = false;
      set(remembered(`bt-log-${name}`, otherwise));
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        remember(`bt-log-${name}`, on);
        this.holding(() => set(on));
        if (this.following) this.toEnd();
      });
      return button;
    }

    lineKey(event) {
      if (event.key === "Escape") this.box.focus();
      if (event.key !== "Enter") return;
      event.preventDefault();
      const asked = Number(this.line.value.replace(/[^\d]/g, ""));
      if (!asked || this.known === 1) return;
      const hash = `#L${Math.min(asked, this.known - 1)}`;
      if (location.hash === hash) this.goToHash();
      else location.hash = hash;
      this.line.value = "";
      this.box.focus({ preventScroll: true });
    }

    handUp() {
      if (this.following && this.box.scrollHeight > this.box.clientHeight) this.follow(false);
    }

    scrolled() {
      const top = this.box.scrollTop;
      const moved = top - this.lastTop;
      const below = this.box.scrollHeight - top - this.box.clientHeight;
      this.lastTop = top;
      // What the script itself moved has been noted already, so this was a hand.
      if (this.following && moved < -1 && below > 24) this.follow(false);
      else if (!this.following && moved > 1 && below < 4 && this.next === this.known && !this.complete) this.follow(true);
      this.load();
    }

    key(event) {
      if (!Beamtime.keysFree?.(event)) return;
      const inside = this.box.contains(document.activeElement);
      if (event.key === "f") this.follow(!this.following);
      else if (event.key === "w") this.wrap?.click();
      else if (event.key === "l" && this.line?.offsetParent) this.line.focus();
      else if (event.key === "End" && inside) this.follow(true);
      else if (event.key === "Home" && inside) {
        this.follow(false);
        this.showAt(1);
      } else return;
      event.preventDefault();
    }

    // --- The socket -------------------------------------------------------------------------------------------------------

    connect() {
      if (this.socket || Beamtime.closed) return;
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      const socket = new WebSocket(`${scheme}://${location.host}/ws/v1/streams/${this.words.stream}/?from=${this.known}`);
      this.socket = socket;
      socket.onmessage = (event) => {
        const frame = JSON.parse(event.data);
        if (frame.type !== "lines" || this.socket !== socket) return;
        this.tries = 0;
        if (frame.complete) this.complete = true;
        this.take(frame.from, frame.to, frame.lines, frame.open);
        if (frame.complete) this.ended();
      };
      socket.onclose = (event) => {
        if (this.socket === socket) this.socket = null;
        if (this.complete || Beamtime.closed || event.code === 4400) return;
        if (event.code === 4403 || event.code === 4404) {
          this.gone();
          return;
        }
        this.tries += 1;
        if (this.tries > 3) this.poll();
        const slow = event.code === 4401 || event.code === 4429;
        const wait = slow ? 15 : Math.min(15, 2 ** this.tries * 0.25);
        setTimeout(() => this.connect(), wait * 1000 * (0.75 + Math.random() / 2));
      };
    }

    /** For those whose network lets no socket through: the same lines by plain GET. */
    poll() {
      if (this.polling) return;
      this.polling = setInterval(async () => {
        if (this.socket?.readyState === WebSocket.OPEN || this.complete || Beamtime.closed) {
          this.polling = clearInterval(this.polling);
          return;
        }
        try {
          const from = this.known;
          const page = await this.read(from, PAGE);
          if (!page) return;
          this.known = from;
          if (page.complete) this.complete = true;
          this.take(page.from, page.to, page.rows);
          if (page.complete) this.ended();
        } catch { /* no connection: the next turn tries again */ }
      }, WITHOUT_SOCKET);
    }

    /** Nothing follows: how large it has become, and what is missing in it, if anything is. */
    async ended() {
      this.open = "";
      this.draw();
      try {
        const answer = await fetch(this.words.streamUrl, { headers: { Accept: "application/json" }, credentials: "same-origin" });
        if (!answer.ok) return;
        const stream = await answer.json();
        const size = new Intl.NumberFormat(document.documentElement.lang || "en", {
          style: "unit", unit: "kilobyte", maximumFractionDigits: stream.bytes < 10000 ? 1 : 0,
        });
        this.card.querySelector("[data-log-bytes]").textContent =
          stream.bytes < 1000 ? `${stream.bytes} B` : size.format(stream.bytes / 1000);
        if (!stream.trouble || this.words.trouble) return;
        this.words.trouble = stream.trouble;
        const spot = document.createElement("span");
        spot.className = "bt-is-warning";
        spot.textContent = stream.trouble;
        this.card.querySelector("[data-log-foot]").prepend(spot);
        this.say();
      } catch { /* the page says it when it is loaded again */ }
    }

    gone() {
      Beamtime.jobClosed?.();
    }
  }

  let log = null;
  const card = document.getElementById("job-log");
  if (card?.dataset.stream) log = new Log(card);

  /** The first container has started: its log is fetched as the page would have shown it. */
  Beamtime.openLog = async function () {
    if (log || Beamtime.openingLog) return;
    Beamtime.openingLog = true;
    try {
      const answer = await fetch(location.pathname, { credentials: "same-origin" });
      if (!answer.ok || log) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("job-log");
      const place = document.getElementById("job-log-place");
      if (!fresh?.dataset.stream || !place) return;
      place.replaceChildren(document.adoptNode(fresh));
      log = new Log(fresh);
    } finally {
      Beamtime.openingLog = false;
    }
  };
})();
