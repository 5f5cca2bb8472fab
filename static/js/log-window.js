/* The rows of a log: a bounded window between two spacers, so that the scroll bar stands for the whole log. What is outside the
 * window is fetched by number, so no line is out of reach.
 *
 *   first ... next ... known      rows [first, next) are in the page; lines exist up to and without `known`
 */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { number, clock, dressed, element } = Beamtime.logText;
  const ROWS = 2000; // rows kept in the page, at most
  const FEWER = 400; // left out together: to take away the first row costs the browser a look at all others
  const TALLEST = 6000000; // pixels; browsers draw nothing beyond some ten millions

  Beamtime.LogRows = ROWS;

  Beamtime.LogWindow = class {
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
        gaps: new Map(), // what is missing, by the line before which it is missing
        buffer: [], // lines from `next` on that are not drawn yet
        open: "",
        chosen: 0,
        following: false,
        lastTop: 0,
        watchers: [], // told after rows have changed
      });
      this.build();
    }

    /** The server's rows, dressed, between two spacers. */
    build() {
      for (const node of this.card.querySelectorAll("[data-log-noscript]")) node.hidden = true;
      const rows = [...this.box.querySelectorAll(".bt-log-row[data-t]")];
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
        text.replaceChildren(dressed(this.painter.line(text.textContent)));
        for (const gap of row.querySelectorAll(".bt-log-gap")) gap.remove(); // log-facts.js sets them, with their times
        this.time(row, Number(row.dataset.t));
      }
      this.rows.append(...rows);
    }

    time(row, ms) {
      const spot = row.querySelector(".bt-log-time");
      spot.textContent = Number.isNaN(ms) ? "" : clock.format(ms);
      spot.title = Number.isNaN(ms) ? "" : new Date(ms).toISOString();
      row.dataset.t = ms;
    }

    row(n, ms, text, painter) {
      const row = element("div", n === this.chosen ? "bt-log-row is-chosen" : "bt-log-row");
      row.id = `${this.words.prefix || ""}L${n}`;
      const link = row.appendChild(element("a", "bt-log-num", number.format(n)));
      link.href = `#L${n}`;
      row.appendChild(element("span", "bt-log-time"));
      row.appendChild(element("span", "bt-log-text")).append(dressed(painter.line(text)));
      this.time(row, ms);
      return row;
    }

    /** Line `n` on the page, if it is in the window. */
    rowOf(n) {
      return n >= this.first && n < this.next ? this.rows.children[n - this.first] : undefined;
    }

    numberOf(row) {
      return this.first + [...this.rows.children].indexOf(row);
    }

    // --- Lines come in ------------------------------------------------------------------------------------------------

    /** Whether the window, with what is about to be drawn, reaches the end. */
    attached() {
      return (this.buffer.length ? this.buffer[this.buffer.length - 1][0] + 1 : this.next) === this.known;
    }

    /** Lines [[n, ms, text], …] of `[from, to)`. Those known already are passed over. False: lines before them are missing. */
    take(from, to, lines, open) {
      if (from > this.known) return false;
      if (this.attached()) {
        for (const line of lines) if (line[0] >= this.known) this.buffer.push(line);
        // A reader who follows a fast log sees its end; what is skipped is above, by number, and it is said.
        if (this.buffer.length > ROWS) {
          const over = this.buffer.length - ROWS;
          if (this.following) this.skipped?.(this.buffer[0][0], this.buffer[over][0]);
          this.buffer = this.following ? this.buffer.slice(-ROWS) : this.buffer.slice(0, ROWS);
        }
      }
      this.known = Math.max(this.known, to);
      if (open !== undefined) this.open = open || "";
      this.draw();
      return true;
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
      if (this.following) {
        this.toEnd();
        if (this.next < this.known) this.catchUp();
        else {
          this.homing = false;
          if (this.complete) this.following = false;
        }
      } else if (this.rows.childElementCount === 0) {
        this.load();
      }
      this.changed();
    }

    changed() {
      for (const watcher of this.watchers) watcher();
    }

    append(lines) {
      if (!lines.length) return;
      this.words.expired = ""; // what kept the page from its lines has passed
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
      const count = this.rows.childElementCount;
      if (count <= ROWS) return;
      const out = document.createRange();
      out.setStart(this.rows, 0);
      out.setEndBefore(this.rows.children[count - ROWS + FEWER]);
      out.deleteContents();
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
      // Why there are no lines, said by the page, stays until there are some.
      if (this.rows.childElementCount || this.open || (this.known > 1 && !this.words.expired)) this.empty?.remove();
      else if (this.empty && this.complete && !this.words.expired) this.empty.textContent = this.words.wordsNone;
      if (this.open && atEnd && !this.complete) {
        const row = this.tail.querySelector(".is-open") || this.tail.appendChild(this.blank("is-open"));
        row.firstElementChild.textContent = number.format(this.known);
        // Painted apart: the colours of an unfinished line must not run into the next one.
        row.lastElementChild.replaceChildren(dressed(new Beamtime.LogPainter().line(this.open)));
      } else {
        this.tail.querySelector(".is-open")?.remove();
      }
      const note = this.tail.querySelector(".bt-log-row--note");
      if (!this.complete || !atEnd || this.known === 1 || this.words.expired) {
        note?.remove();
      } else if (!note) {
        this.tail.appendChild(this.blank("bt-log-row--note")).lastElementChild.textContent = this.words.wordsEnd;
      }
    }

    blank(name) {
      const row = element("div", `bt-log-row ${name}`);
      for (const part of ["num", "time", "text"]) row.appendChild(element("span", `bt-log-${part}`));
      return row;
    }

    /** Spacers as high as the lines outside the window would be, were each one row. */
    space() {
      const unit = Math.min(this.unit, TALLEST / this.known);
      this.above.style.height = `${Math.round((this.first - 1) * unit)}px`;
      this.below.style.height = `${Math.round((this.known - this.next) * unit)}px`;
      return unit;
    }
  };
})();
