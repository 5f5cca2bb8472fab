/* The job's page stays true by itself: the socket says *that* something changed, the living parts are then fetched through the
 * ordinary view and put in their places by htmx. Without a socket they are fetched every few seconds; without this script the page
 * is still whole. */
(function () {
  "use strict";
  const Beamtime = (window.Beamtime = window.Beamtime || {});
  const byId = (id) => document.getElementById(id);
  const watch = byId("job-watch");
  if (!watch) return;
  const POLL = 10000; // cost and times move on while nothing else changes
  const WITHOUT_SOCKET = 4000;
  const GATHER = 150; // from one look to the next: what changes meanwhile is one look
  const AFTER = 1500;
  const SLOW = 5000; // without a connection for so long: "reconnecting"
  const LOST = 15000; // and for so long: the banner
  const SAY = 30000; // for who reads by ear: at most this often, and only what means something else
  const facts = () => byId("job-now").dataset;
  let socket = null;
  let tries = 0;
  let lostAt = 0;
  let nextTry = 0;
  let again = 0;
  let gathering = 0;
  let looked = 0;
  let after = 0;
  let pending = false; // something was left as it was: it is looked at again when it is let go
  let fetching = false;
  let asked = false; // something changed while the answer was on its way

  /* Over, and its cost is final: nothing moves on by itself any more. */
  const settled = () => facts().settled === "yes";

  // --- Looking ------------------------------------------------------------------------------------------------------------

  function refresh() {
    if (gathering || Beamtime.closed) return;
    gathering = setTimeout(() => {
      gathering = 0;
      looked = Date.now();
      look();
    }, Math.max(0, looked + GATHER - Date.now()));
  }

  async function look() {
    asked = fetching;
    pending ||= document.hidden;
    if (fetching || document.hidden) return;
    pending = false;
    fetching = true;
    const values = { part: watch.dataset.part, state: facts().state };
    const stream = byId("job-log")?.dataset.stream;
    if (stream) values.stream = stream;
    try {
      await window.htmx.ajax("GET", watch.dataset.url, { target: "#job-watch", swap: "none", values });
    } catch {
      pending = true; // the live mark speaks for the connection
    } finally {
      fetching = false;
    }
    if (asked) refresh();
  }

  /** A part is not replaced while it holds the focus, an open menu or dialog, or selected text; it is right after. */
  function held(part) {
    const picked = window.getSelection();
    return (
      part.contains(document.activeElement) ||
      part.querySelector("dialog[open], details[open], [aria-busy='true']") !== null ||
      (picked && !picked.isCollapsed && part.contains(picked.anchorNode))
    );
  }

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    const fresh = fragment.firstElementChild;
    if (target.id !== "job-now" && held(target)) {
      pending = true;
      event.detail.shouldSwap = false;
    } else if (fresh && target.isEqualNode(fresh)) {
      event.detail.shouldSwap = false;
    }
  });
  for (const name of ["focusout", "toggle", "close"]) {
    document.addEventListener(name, () => setTimeout(() => pending && refresh()), true);
  }

  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.target !== watch || !event.detail.successful) return;
    const { title, favicon, streams } = facts();
    document.title = `${title} · Beamtime`;
    byId("favicon").href = favicon;
    if (streams.trim() && !byId("job-log")?.dataset.stream && byId("job-log-place")) Beamtime.openLog?.();
    for (const node of document.querySelectorAll("#log-choose [data-log-noscript]")) node.hidden = true;
    skew = new Date(facts().now) - Date.now();
    tick();
    announce();
  });

  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.target === watch && event.detail.xhr.status === 404) closed();
  });

  // --- For the ear ----------------------------------------------------------------------------------------------------------

  let said = facts().meaning;
  let saidAt = 0;
  let saying = 0;
  function announce() {
    if (facts().meaning === said || saying) return;
    saying = setTimeout(() => {
      saying = 0;
      if (facts().meaning === said) return;
      said = facts().meaning;
      saidAt = Date.now();
      byId("job-said").textContent = facts().said;
    }, Math.max(0, saidAt + SAY - Date.now()));
  }

  // --- Lengths of time grow by the second -----------------------------------------------------------------------------------

  let skew = new Date(watch.dataset.now) - Date.now();
  /** Seconds in the words of the filter `duration` (portal/web/templatetags/beamtime.py). */
  function duration(seconds) {
    const [m, h, d] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
    if (!m) return `${seconds} s`;
    if (!h) return seconds % 60 ? `${m} min ${seconds % 60} s` : `${m} min`;
    if (!d) return seconds % 3600 ? `${h} h ${m % 60} min` : `${h} h`;
    return seconds % 86400 ? `${d} d ${h % 24} h` : `${d} d`;
  }
  function tick() {
    if (document.hidden) return;
    const now = Date.now() + skew;
    for (const node of document.querySelectorAll("[data-ticks]")) {
      const words = duration(Math.max(0, Math.floor((now - new Date(node.dataset.ticks)) / 1000)));
      if (node.textContent !== words) node.textContent = words;
    }
  }
  setInterval(tick, 1000);

  // --- The end of one's right to see it ---------------------------------------------------------------------------------------

  function closed() {
    if (Beamtime.closed) return;
    Beamtime.closed = true;
    socket?.close();
    Beamtime.live?.set("off");
    const main = byId("content");
    main.replaceChildren();
    main.appendChild(document.createElement("h1")).textContent = watch.dataset.gone;
    byId("job-dialogs")?.remove();
    document.querySelector(".bt-crumbs [aria-current]")?.replaceChildren();
    document.title = "Beamtime";
  }
  Beamtime.jobClosed = closed;

  // --- The socket --------------------------------------------------------------------------------------------------------------

  /** How long there has been no connection decides what is said of it: nothing, "reconnecting", the banner. */
  function mark() {
    const gone = lostAt ? Date.now() - lostAt : 0;
    if (!lostAt || Beamtime.closed) return;
    if (gone > LOST) {
      Beamtime.live?.set("lost", { since: new Date(lostAt), seconds: Math.max(1, Math.ceil((nextTry - Date.now()) / 1000)), retry });
    } else if (gone > SLOW) {
      Beamtime.live?.set("reconnecting");
    }
  }

  function connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/ws/v1/jobs/${watch.dataset.job}/`);
    socket.onmessage = (event) => {
      tries = lostAt = 0;
      Beamtime.live?.set("live");
      const message = JSON.parse(event.data);
      if (message.type === "log") Beamtime.logNews?.(message.stream);
      if (message.revision !== undefined && message.revision <= Number(facts().revision)) return;
      refresh();
      // What it holds from now on is written down right after its state.
      clearTimeout(after);
      after = setTimeout(refresh, AFTER);
    };
    socket.onclose = (event) => {
      socket = null;
      if (Beamtime.closed) return;
      if (event.code === 4403 || event.code === 4404) {
        closed();
        return;
      }
      if (event.code === 4401) Beamtime.alert?.(byId("bt-alerts").dataset.session, "warning");
      tries += 1;
      const slow = event.code === 4401 || event.code === 4429;
      const wait = (slow ? 15 : Math.min(15, 2 ** tries * 0.25)) * 1000 * (0.75 + Math.random() / 2);
      lostAt ||= Date.now();
      nextTry = Date.now() + wait;
      again = setTimeout(connect, wait);
      mark();
      setTimeout(mark, SLOW + 50);
    };
  }
  function retry() {
    clearTimeout(again);
    if (!socket && !Beamtime.closed) connect();
  }

  // --- Links -----------------------------------------------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-copy-link]");
    if (!link || !navigator.clipboard) return;
    event.preventDefault();
    navigator.clipboard.writeText(link.href).then(
      () => {
        byId("job-more").open = false;
        Beamtime.toast?.(link.dataset.copied);
      },
      () => { location.href = link.href; },
    );
  });

  setInterval(() => {
    if (pending || !settled()) refresh();
  }, POLL);
  setInterval(() => {
    if (!socket && !settled()) refresh();
  }, WITHOUT_SOCKET);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || Beamtime.closed) return;
    retry();
    refresh();
  });
  window.addEventListener("online", retry);
  connect();
})();
