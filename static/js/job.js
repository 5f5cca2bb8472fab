/* The job's page stays true by itself: the socket says *that* something changed, the living part is then fetched through the
 * ordinary view. Without a socket it is fetched every few seconds; without this script the page is still whole. */
(function () {
  "use strict";
  const Beamtime = (window.Beamtime = window.Beamtime || {});
  const spot = document.getElementById("job-live");
  if (!spot) return;
  const now = () => document.getElementById("job-now");
  const POLL = 10000; // cost and lengths of time move on while nothing else changes
  const WITHOUT_SOCKET = 4000;
  const GONE = [4401, 4403, 4404];
  let socket = null;
  let tries = 0;
  let lastHeard = new Date();
  let again = 0;
  let pending = false;
  let fetching = false;

  const over = () => now()?.dataset.over === "yes";

  /* A fragment is not replaced while it holds the focus or an open dialog; it is right after. */
  const busy = () =>
    document.querySelector("#job-dialogs dialog[open]") ||
    document.querySelector("#job-actions [aria-busy='true']") ||
    (window.getSelection && !window.getSelection().isCollapsed && spot.contains(window.getSelection().anchorNode));

  async function refresh() {
    if (fetching || busy() || document.hidden) {
      pending = true;
      return;
    }
    pending = false;
    fetching = true;
    try {
      await window.htmx.ajax("GET", spot.dataset.url, { target: "#job-live", swap: "innerHTML" });
    } finally {
      fetching = false;
    }
  }

  document.body.addEventListener("htmx:afterSettle", () => {
    const facts = now()?.dataset;
    if (!facts?.title) return;
    document.title = `${facts.title} · Beamtime`;
    const icon = document.getElementById("favicon");
    icon.href = icon.href.replace(/favicon[\w-]*(\.\w+)?\.svg/, `favicon-${facts.tone}.svg`);
    // A container has started since: its log belongs on the page.
    const streams = facts.streams.trim().split(/\s+/).filter(Boolean);
    if (streams.length && !document.getElementById("job-log")?.dataset.stream) Beamtime.openLog?.(streams[streams.length - 1]);
  });

  document.body.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 404 && event.detail.target === spot) closed();
  });

  function closed() {
    Beamtime.closed = true;
    const main = document.getElementById("content");
    const words = document.getElementById("job-log")?.dataset.wordsGone || "This is no longer open to you.";
    main.replaceChildren();
    main.appendChild(document.createElement("h1")).textContent = words;
  }
  Beamtime.jobClosed = closed;

  function connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/ws/v1/jobs/${spot.dataset.job}/`);
    socket.onmessage = (event) => {
      tries = 0;
      lastHeard = new Date();
      Beamtime.live?.set("live");
      const message = JSON.parse(event.data);
      const shown = Number(spot.querySelector("[data-revision]")?.dataset.revision || 0);
      if (message.revision === undefined || message.revision > shown) refresh();
    };
    socket.onclose = (event) => {
      socket = null;
      if (Beamtime.closed) return;
      if (GONE.includes(event.code)) {
        closed();
        return;
      }
      tries += 1;
      const wait = Math.min(15, 2 ** tries * 0.25) * (0.75 + Math.random() / 2);
      if (new Date() - lastHeard > 15000) {
        Beamtime.live?.set("lost", { since: lastHeard, seconds: Math.ceil(wait), retry: retry });
      } else if (new Date() - lastHeard > 5000 || tries > 2) {
        Beamtime.live?.set("reconnecting");
      }
      again = setTimeout(connect, wait * 1000);
    };
  }
  function retry() {
    clearTimeout(again);
    if (!socket) connect();
  }

  setInterval(() => {
    if (Beamtime.closed) return;
    if (pending || !over()) refresh();
  }, POLL);
  setInterval(() => {
    if (!Beamtime.closed && !socket && !over()) refresh();
  }, WITHOUT_SOCKET);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !Beamtime.closed) {
      retry();
      refresh();
    }
  });
  window.addEventListener("online", retry);
  connect();
})();
