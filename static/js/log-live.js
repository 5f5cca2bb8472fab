/* How new lines come: by WebSocket, by Server-Sent Events where no socket gets through, by plain GET where neither does. The same
 * frames, by line number, over all three; whatever breaks is taken up again from the next number. Which way works is remembered
 * for the session. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { remember, remembered } = Beamtime.logText;
  const WAYS = ["socket", "events", "poll"];
  const FAILURES = 2; // handshakes that failed, one after the other: the next way is tried
  const PAGE = 500;
  const WITHOUT_SOCKET = 2000;
  const UPGRADE = 60000; // with plain GET: how often a better way is tried again
  const KEY = "bt-log-way";

  Beamtime.LogLive = class {
    /** `log` has words.stream, known, complete, take(), behind(), ended(), expired(), gone(). */
    constructor(log) {
      this.log = log;
      this.tries = 0;
      this.failures = 0;
      this.way = WAYS.includes(remembered(KEY, "", "sessionStorage")) ? remembered(KEY, "", "sessionStorage") : "socket";
      window.addEventListener("online", () => this.now());
      document.addEventListener("visibilitychange", () => !document.hidden && this.now());
    }

    get over() {
      return this.log.complete || this.log.words.expired || Beamtime.closed || this.stopped;
    }

    /** At once, if nothing is open and nothing under way. */
    now() {
      if (this.over || this.line) return;
      clearTimeout(this.again);
      this.open();
    }

    open() {
      if (this.line || this.over) return;
      if (this.way === "socket") this.socket();
      else if (this.way === "events") this.events();
      else this.poll();
    }

    close() {
      this.stopped = true;
      clearTimeout(this.again);
      this.line?.close();
    }

    /** After `wait` seconds, somewhat spread, so that the pages of a restarted server do not all come at once. */
    later(wait) {
      clearTimeout(this.again);
      if (!this.over) this.again = setTimeout(() => this.open(), wait * 1000 * (0.75 + Math.random() / 2));
    }

    heard(frame) {
      this.tries = this.failures = 0;
      remember(KEY, this.way, "sessionStorage");
      if (frame.type === "skipped") {
        this.log.behind(frame.to);
        return;
      }
      if (frame.type !== "lines") return;
      if (frame.complete) this.log.complete = true;
      if (!this.log.take(frame.from, frame.to, frame.lines, frame.open)) this.line?.close();
      else if (frame.complete) this.log.ended();
    }

    /** Code of the end, as in portal/live/README.md; `opened`: whether anything was heard. */
    lost(code, opened) {
      this.line = null;
      if (this.over || code === 4400 || code === 4500) return;
      if (code === 4410) {
        this.log.expired();
        return;
      }
      if (code === 4403 || code === 4404) {
        this.log.gone();
        return;
      }
      const refused = code === 4401 || code === 4429;
      if (!opened && !refused && navigator.onLine && (this.failures += 1) >= FAILURES) {
        this.failures = 0;
        this.way = WAYS[Math.min(WAYS.indexOf(this.way) + 1, WAYS.length - 1)];
      }
      this.tries += 1;
      this.later(refused ? 15 : Math.min(15, 2 ** Math.min(this.tries, 8) * 0.25));
    }

    query() {
      return `?from=${this.log.known}&skip=yes`;
    }

    socket() {
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      const socket = new WebSocket(`${scheme}://${location.host}/ws/v1/streams/${this.log.words.stream}/${this.query()}`);
      let opened = false;
      this.line = socket;
      socket.onmessage = (event) => {
        if (this.line !== socket) return;
        opened = true;
        this.heard(JSON.parse(event.data));
      };
      socket.onclose = (event) => this.line === socket && this.lost(event.code, opened);
    }

    events() {
      const source = new EventSource(`/live/v1/streams/${this.log.words.stream}/events${this.query()}`);
      let opened = false;
      this.line = source;
      const end = (code) => {
        source.close();
        if (this.line === source) this.lost(code, opened);
      };
      source.onmessage = (event) => {
        if (this.line !== source) return;
        opened = true;
        this.heard(JSON.parse(event.data));
      };
      source.addEventListener("end", (event) => end(JSON.parse(event.data).code));
      // The browser's own way of trying again would ask for the lines of the first time.
      source.onerror = () => end(1006);
    }

    async poll() {
      const line = { close() {} };
      this.line = line;
      let page = null;
      const from = this.log.known;
      try {
        page = await this.log.read(from, PAGE);
      } catch {
        this.troubled = true; // no connection at all: a better way may work once it is back
      }
      if (this.line !== line) return;
      this.line = null;
      if (this.over) return;
      if (!page) {
        this.later(WITHOUT_SOCKET / 1000);
        return;
      }
      this.log.known = from;
      this.heard({ type: "lines", from: page.from, to: page.to, lines: page.rows, complete: page.complete });
      this.began ||= Date.now();
      if (this.troubled || Date.now() - this.began > UPGRADE) {
        this.began = 0;
        this.troubled = false;
        this.way = "socket";
      }
      this.later(page.rows.length === PAGE ? 0 : WITHOUT_SOCKET / 1000);
    }
  };
})();
