/* The window moves: what the reader scrolls to, jumps to or follows is fetched by number and put in its place. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { shown, json } = Beamtime.logText;
  const ROWS = Beamtime.LogRows;
  const PAGE = 500; // lines asked for at once
  const NEAR = 800; // pixels from the window's edge at which more is fetched

  Beamtime.LogScroll = class extends Beamtime.LogWindow {
    /** Lines that cannot be had, although others can: said once, not at each turn of the wheel. */
    refuse(words) {
      if (!words || words === this.refusedWith || this.words.expired) return;
      this.refusedWith = words;
      Beamtime.toast?.(words);
    }

    async read(from, limit) {
      const page = await json(`${this.words.linesUrl}?from=${from}&limit=${limit}`);
      if (!page?.lines) {
        if (!page) return null;
        if (page.refused.status === 410) this.expire(page.refused.detail);
        else this.refuse(page.refused.detail);
        throw new Error(page.refused.detail); // so that nobody asks again at once
      }
      this.refusedWith = "";
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
        if (this.wanted) {
          const [n, options] = this.wanted;
          this.wanted = null;
          this.showAt(n, options);
        }
      }
      this.load();
    }

    /** Fetch what is missing for what is in view. */
    load() {
      if (this.loading || Beamtime.closed || this.words.expired) return;
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
      this.changed();
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
          if (page.from !== this.next) {
            // Whoever asked for the end goes there; whoever was there and fell behind is told what was left out.
            if (!this.homing) this.skipped(this.next, page.from);
            this.clear(page.from);
          }
          this.append(page.rows);
          this.trimTop();
        }
        this.draw();
      });
    }

    /** Show line `n`, whatever is shown now; at the top of the box, or in its middle if it was chosen. */
    async showAt(n, { middle = false } = {}) {
      if (n >= this.first && n < this.next) {
        this.scrollTo(n, middle);
        return;
      }
      if (this.loading) {
        this.wanted = [n, { middle }]; // the last wish counts
        return;
      }
      await this.once(async () => {
        const page = await this.read(Math.max(1, n - 100), PAGE);
        if (!page) return;
        this.buffer = [];
        this.clear(page.from);
        this.append(page.rows);
        this.drawTail();
        this.space();
        this.scrollTo(n, middle);
        this.changed();
      });
    }

    scrollTo(n, middle) {
      const row = this.rowOf(n);
      if (!row) return;
      const edge = row.getBoundingClientRect().top - this.box.getBoundingClientRect().top;
      this.box.scrollTop += middle ? edge - (this.box.clientHeight - row.offsetHeight) / 2 : edge;
      this.lastTop = this.box.scrollTop;
    }

    toEnd() {
      this.box.scrollTop = this.box.scrollHeight;
      this.lastTop = this.box.scrollTop;
    }
  };
})();
