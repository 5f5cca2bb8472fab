/* A log that is read live by line number. The page brings the last lines as text; this script colours them, opens the stream's
 * socket from the next number, fills any hole by a ranged GET, and keeps a bounded window of rows. What scrolls out is fetched
 * again by number, so no line is out of reach. Text is only ever set as text. */
(function () {
  "use strict";
  const Beamtime = (window.Beamtime = window.Beamtime || {});
  const ROWS = 2000; // rows kept in the page
  const PAGE = 500; // lines asked for at once
  const LONGEST = 8192; // characters shown of one line; the download has all of it
  const WITHOUT_SOCKET = 2000;
  const GONE = [4401, 4403, 4404];
  const number = new Intl.NumberFormat(document.documentElement.lang || "en");

  class Log {
    constructor(card) {
      this.card = card;
      this.box = card.querySelector(".bt-log");
      this.foot = card.querySelector("[data-log-foot]");
      this.words = card.dataset;
      this.painter = new Beamtime.LogPainter();
      this.first = Number(card.dataset.first || 1);
      this.next = Number(card.dataset.next || 1); // the line after the last row
      this.known = this.next; // the line after the last that exists
      this.complete = card.dataset.complete === "yes";
      this.missed = 0;
      this.tries = 0;
      this.loading = false;
      this.socket = null;
      this.openRow = this.box.querySelector(".is-open");
      for (const node of card.querySelectorAll("[data-log-noscript]")) node.hidden = true;
      for (const row of this.box.querySelectorAll(".bt-log-row[id]")) this.dress(row);
      this.more = this.makeMore();
      this.controls();
      this.follow(!location.hash.startsWith("#L"));
      this.goToHash();
      if (!this.complete) this.connect();
      else this.note();
    }

    /** Colour and time for a row that the server wrote as plain text. */
    dress(row) {
      const text = row.querySelector(".bt-log-text");
      text.replaceChildren(this.painter.line(text.textContent.slice(0, LONGEST)));
      this.time(row, Number(row.dataset.t));
    }

    time(row, ms) {
      const spot = row.querySelector(".bt-log-time");
      const date = new Date(ms);
      spot.textContent = Number.isNaN(ms) ? "" : date.toLocaleTimeString([], { hour12: false });
      spot.title = Number.isNaN(ms) ? "" : date.toISOString();
    }

    row(n, ms, text, painter) {
      const row = document.createElement("div");
      row.className = "bt-log-row";
      row.id = `L${n}`;
      const link = row.appendChild(document.createElement("a"));
      link.className = "bt-log-num";
      link.href = `#L${n}`;
      link.textContent = number.format(n);
      row.appendChild(document.createElement("span")).className = "bt-log-time";
      const words = row.appendChild(document.createElement("span"));
      words.className = "bt-log-text";
      const long = text.length > LONGEST && !text.includes("\r");
      words.append(painter.line(long ? `${text.slice(0, LONGEST)}…` : text));
      this.time(row, ms);
      return row;
    }

    // --- Lines come in ----------------------------------------------------------------------------------------------------------
    atEnd() {
      return this.next === this.known;
    }

    /** Lines [[n, ms, text], …] that exist from `from` on; those already shown are passed over, a hole is fetched. */
    take(from, to, lines, open) {
      const attached = this.atEnd();
      this.known = Math.max(this.known, to);
      if (from > this.next && attached) {
        this.fill();
        return;
      }
      if (attached || this.following) {
        const fresh = lines.filter((line) => line[0] >= this.next);
        if (fresh.length && fresh[0][0] === this.next) this.append(fresh);
        else if (fresh.length && this.following) this.jumpToEnd();
      } else if (!this.following) {
        this.missed += lines.length;
      }
      this.showOpen(open);
      this.sayFoot();
    }

    append(lines) {
      this.box.querySelector(".bt-log-empty")?.remove();
      const rows = document.createDocumentFragment();
      for (const [n, ms, text] of lines) rows.append(this.row(n, ms, text, this.painter));
      this.box.insertBefore(rows, this.openRow?.parentNode === this.box ? this.openRow : null);
      this.next = lines[lines.length - 1][0] + 1;
      if (this.following) {
        this.trimTop();
        this.toEnd();
      } else {
        this.missed += lines.length;
        // Nothing moves under the reader: the window grows to twice its size, then new lines wait below the button.
        if (this.box.childElementCount > ROWS * 2) this.trimTopQuietly();
      }
    }

    showOpen(text) {
      if (text === undefined || text === null) return;
      if (!text || !this.atEnd()) {
        this.openRow?.remove();
        this.openRow = null;
        return;
      }
      if (!this.openRow) {
        this.openRow = document.createElement("div");
        this.openRow.className = "bt-log-row is-open";
        for (const name of ["num", "time", "text"]) {
          this.openRow.appendChild(document.createElement("span")).className = `bt-log-${name}`;
        }
        this.box.querySelector(".bt-log-empty")?.remove();
      }
      if (this.openRow.parentNode !== this.box) this.box.append(this.openRow);
      // Painted apart: the colours of an unfinished line must not run into the next one.
      this.openRow.querySelector(".bt-log-text").replaceChildren(new Beamtime.LogPainter().line(text.slice(-LONGEST)));
      if (this.following) this.toEnd();
    }

    trimTop() {
      const rows = this.box.querySelectorAll(".bt-log-row[id]");
      for (let at = 0; at < rows.length - ROWS; at += 1) rows[at].remove();
      this.first = this.firstShown();
    }

    trimTopQuietly() {
      const before = this.box.scrollHeight;
      const top = this.box.scrollTop;
      this.trimTop();
      this.box.scrollTop = Math.max(0, top - (before - this.box.scrollHeight));
    }

    firstShown() {
      const row = this.box.querySelector(".bt-log-row[id]");
      return row ? Number(row.id.slice(1)) : this.next;
    }

    // --- Ranged reads -------------------------------------------------------------------------------------------------------------
    async read(from, limit) {
      const answer = await fetch(`${this.words.linesUrl}?from=${from}&limit=${limit}`, {
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      if (answer.status === 404 || answer.status === 403 || answer.status === 401) {
        this.gone();
        return null;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const page = await answer.json();
      page.rows = page.lines.map((line) => [line.n, Date.parse(line.t), line.text]);
      return page;
    }

    async once(work) {
      if (this.loading) return;
      this.loading = true;
      try {
        await work();
      } catch {
        /* the live mark speaks for the connection; the next scroll or message tries again */
      } finally {
        this.loading = false;
      }
    }

    fill() {
      return this.once(async () => {
        while (this.next < this.known) {
          const page = await this.read(this.next, PAGE);
          if (!page || !page.rows.length) return;
          this.append(page.rows);
        }
      });
    }

    earlier() {
      return this.once(async () => {
        if (this.first <= 1) return;
        const from = Math.max(1, this.first - PAGE);
        const page = await this.read(from, this.first - from);
        if (!page) return;
        const before = this.box.scrollHeight;
        const rows = document.createDocumentFragment();
        const painter = new Beamtime.LogPainter();
        for (const [n, ms, text] of page.rows) rows.append(this.row(n, ms, text, painter));
        this.box.prepend(rows);
        this.first = this.firstShown();
        this.box.scrollTop += this.box.scrollHeight - before;
        const all = this.box.querySelectorAll(".bt-log-row[id]");
        if (all.length > ROWS * 2) {
          for (let at = ROWS * 2; at < all.length; at += 1) all[at].remove();
          this.next = Number(all[ROWS * 2 - 1].id.slice(1)) + 1;
          this.openRow?.remove();
          this.openRow = null;
        }
      });
    }

    later() {
      return this.once(async () => {
        if (this.atEnd()) return;
        const page = await this.read(this.next, PAGE);
        if (page?.rows.length) {
          this.append(page.rows);
          this.trimTopQuietly();
        }
      });
    }

    /** Show the lines around `n`, whatever is shown now. */
    async goTo(n) {
      const shown = document.getElementById(`L${n}`);
      if (!shown) {
        const page = await this.read(Math.max(1, n - 100), PAGE);
        if (!page) return;
        this.restart(page);
      }
      for (const row of this.box.querySelectorAll(".is-chosen")) row.classList.remove("is-chosen");
      const row = document.getElementById(`L${n}`);
      row?.classList.add("is-chosen");
      row?.scrollIntoView({ block: "center" });
    }

    restart(page) {
      for (const row of this.box.querySelectorAll(".bt-log-row[id]")) row.remove();
      this.openRow?.remove();
      this.openRow = null;
      this.painter = new Beamtime.LogPainter();
      this.next = page.from;
      const quiet = this.following;
      this.following = false;
      if (page.rows.length) this.append(page.rows);
      this.following = quiet;
      this.missed = 0;
      this.first = this.firstShown();
      this.next = page.to;
      this.known = Math.max(this.known, page.to);
    }

    async jumpToEnd() {
      if (!this.atEnd() || this.known - this.firstShown() > ROWS * 2) {
        await this.once(async () => {
          const page = await this.read(Math.max(1, this.known - PAGE), PAGE);
          if (page) this.restart(page);
        });
      }
      this.toEnd();
    }

    // --- Following ------------------------------------------------------------------------------------------------------------------
    follow(on) {
      this.following = on;
      const box = this.card.querySelector("[data-log-follow] input");
      if (box) box.checked = on;
      if (on) {
        this.missed = 0;
        this.jumpToEnd();
      }
      this.sayMore();
    }

    toEnd() {
      this.lastTop = this.box.scrollTop = this.box.scrollHeight;
    }

    makeMore() {
      const strip = document.createElement("div");
      strip.className = "bt-log-more";
      strip.hidden = true;
      const button = strip.appendChild(document.createElement("button"));
      button.type = "button";
      button.className = "bt-btn bt-btn--small";
      button.addEventListener("click", () => this.follow(true));
      this.card.querySelector(".bt-log-frame").append(strip);
      return strip;
    }

    sayMore() {
      const waiting = this.following ? 0 : Math.max(this.missed, this.known - this.next);
      this.more.hidden = waiting === 0;
      this.more.firstChild.textContent = this.words.wordsNew.replace("{n}", number.format(waiting));
    }

    sayFoot() {
      this.sayMore();
      if (this.words.wordsTrouble) return;
      const words = this.complete ? this.words.wordsComplete : this.words.wordsHere;
      this.foot.querySelector("span").textContent = words.replace("{n}", number.format(this.known - 1));
    }

    note() {
      if (this.box.querySelector(".bt-log-row--note") || !this.atEnd()) return;
      this.openRow?.remove();
      const row = this.box.appendChild(document.createElement("div"));
      row.className = "bt-log-row bt-log-row--note";
      row.appendChild(document.createElement("span")).className = "bt-log-num";
      const words = row.appendChild(document.createElement("span"));
      words.className = "bt-log-text";
      words.textContent = this.words.wordsEnd;
      if (this.following) this.toEnd();
      this.sayFoot();
    }

    // --- Hands ------------------------------------------------------------------------------------------------------------------------
    controls() {
      const toggle = (name, on, act) => {
        const button = this.card.querySelector(`[data-log-${name}]`);
        if (!button) return null;
        button.hidden = false;
        button.addEventListener("click", () => {
          const now = button.getAttribute("aria-pressed") !== "true";
          button.setAttribute("aria-pressed", String(now));
          act(now);
        });
        return button;
      };
      toggle("times", false, (on) => this.box.classList.toggle("has-times", on));
      this.wrap = toggle("wrap", true, (on) => this.box.classList.toggle("is-nowrap", !on));
      const follow = this.card.querySelector("[data-log-follow]");
      if (follow) {
        follow.hidden = false;
        follow.querySelector("input").addEventListener("change", (event) => this.follow(event.target.checked));
      }
      const choose = this.card.querySelector("#log-stream");
      choose?.addEventListener("change", () => choose.form.requestSubmit());
      this.box.addEventListener("scroll", () => this.scrolled(), { passive: true });
      window.addEventListener("hashchange", () => this.goToHash());
      document.addEventListener("keydown", (event) => this.key(event));
    }

    scrolled() {
      const top = this.box.scrollTop;
      const below = this.box.scrollHeight - top - this.box.clientHeight;
      if (this.following && top < (this.lastTop || 0) - 4 && below > 24) this.follow(false);
      else if (!this.following && below < 4 && this.atEnd() && !this.complete) this.follow(true);
      this.lastTop = top;
      if (top < 400) this.earlier();
      if (below < 400 && !this.following) this.later();
    }

    key(event) {
      if (!Beamtime.keysFree?.(event)) return;
      if (event.key === "f") this.follow(!this.following);
      else if (event.key === "w") this.wrap?.click();
      else if (event.key === "End" && this.box.contains(document.activeElement)) this.follow(true);
      else if (event.key === "Home" && this.box.contains(document.activeElement)) {
        event.preventDefault();
        this.follow(false);
        this.goTo(1);
      } else if (event.key === "l") {
        event.preventDefault();
        const asked = Number(window.prompt(this.words.wordsLine || "Line"));
        if (asked >= 1) location.hash = `L${Math.min(asked, this.known - 1)}`;
      }
    }

    goToHash() {
      const found = /^#L(\d{1,15})$/.exec(location.hash);
      if (!found) return;
      this.follow(false);
      this.goTo(Number(found[1])).catch(() => {});
    }

    // --- The socket -------------------------------------------------------------------------------------------------------------------
    connect() {
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      const address = `${scheme}://${location.host}/ws/v1/streams/${this.words.stream}/?from=${this.known}`;
      this.socket = new WebSocket(address);
      this.socket.onmessage = (event) => {
        this.tries = 0;
        const frame = JSON.parse(event.data);
        if (frame.type !== "lines") return;
        this.take(frame.from, frame.to, frame.lines, frame.open);
        if (frame.complete) {
          this.complete = true;
          this.socket.close();
          this.note();
        }
      };
      this.socket.onclose = (event) => {
        this.socket = null;
        if (this.complete || Beamtime.closed) return;
        if (GONE.includes(event.code)) {
          this.gone();
          return;
        }
        this.tries += 1;
        if (this.tries > 3) this.poll();
        setTimeout(() => this.connect(), Math.min(15, 2 ** this.tries * 0.25) * 1000 * (0.75 + Math.random() / 2));
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
          const page = await this.read(this.known, PAGE);
          if (!page) return;
          this.take(page.from, page.to, page.rows, "");
          if (page.complete) {
            this.complete = true;
            this.note();
          }
        } catch { /* no connection: the next turn tries again */ }
      }, WITHOUT_SOCKET);
    }

    gone() {
      Beamtime.closed = true;
      this.box.replaceChildren();
      if (Beamtime.jobClosed) Beamtime.jobClosed();
      else this.box.textContent = this.words.wordsGone;
    }
  }

  let log = null;
  const card = document.getElementById("job-log");
  if (card?.dataset.stream) log = new Log(card);

  /** The first container has started: its log is fetched as the page would have shown it. */
  Beamtime.openLog = async function () {
    if (log) return;
    const answer = await fetch(location.pathname, { credentials: "same-origin" });
    if (!answer.ok || log) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("job-log");
    if (!fresh?.dataset.stream) return;
    const adopted = document.adoptNode(fresh);
    document.getElementById("job-log").replaceWith(adopted);
    log = new Log(adopted);
  };
})();
