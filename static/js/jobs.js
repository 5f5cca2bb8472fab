/* Lists of jobs: rows that are in view follow the cluster; new jobs wait behind a bar and push nothing.
 * The socket only says that something changed; the rows come through the ordinary page's rights. */
(function () {
  "use strict";
  const doc = document;
  const list = doc.querySelector("[data-bt-live]");
  if (!list) return;

  for (const field of doc.querySelectorAll("[data-bt-autosend]")) {
    field.addEventListener("change", () => field.form.requestSubmit());
  }

  const rowOf = (id) => doc.getElementById(`job-${id}`);
  const active = () => [...list.querySelectorAll("[data-bt-active='yes']")].map((row) => row.dataset.btJob);

  // --- Fetch what changed, at most twice a second, never over something that is being used -------------------------------
  const due = new Set();
  let timer = 0;
  let busy = false;
  function want(ids) {
    for (const id of ids) if (rowOf(id)) due.add(id);
    if (due.size && !timer && !busy) timer = setTimeout(refresh, 500);
  }
  const inUse = (row) => {
    const marked = doc.getSelection();
    return row.contains(doc.activeElement) || (!marked.isCollapsed && marked.containsNode(row, true));
  };
  async function refresh() {
    timer = 0;
    if (doc.hidden || busy) return;
    const ids = [...due].slice(0, 50);
    if (!ids.length) return;
    busy = true;
    try {
      const join = list.dataset.btRows.includes("?") ? "&" : "?";
      const answer = await fetch(list.dataset.btRows + join + ids.map((id) => `id=${id}`).join("&"), { headers: { "HX-Request": "true" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ids) {
        const [old, row] = [rowOf(id), fresh.getElementById(`job-${id}`)];
        if (old && inUse(old)) continue;
        due.delete(id);
        if (old && row) old.replaceWith(row);
      }
      const [counts, now] = [doc.getElementById("job-filters"), fresh.getElementById("job-filters")];
      if (counts && now && !counts.contains(doc.activeElement)) counts.replaceWith(now);
    } catch { /* the next tick tries again; the live mark says that there is trouble */ }
    busy = false;
    if (due.size) timer = setTimeout(refresh, 2000);
  }

  // --- New jobs: a bar with their number; only the first page shows it ------------------------------------------------------
  const bar = doc.getElementById("new-jobs");
  const arrived = new Set();
  function announce(id) {
    if (!bar || !("btFirst" in list.dataset) || rowOf(id)) return;
    arrived.add(id);
    const link = bar.querySelector("a");
    link.textContent = arrived.size === 1 ? link.dataset.one : link.dataset.many.replace("{n}", String(arrived.size));
    bar.hidden = false;
  }

  // --- The socket: reconnects with growing pauses; after 15 s the banner of the frame says since when -----------------------
  let since = null;
  let pause = 1000;
  let closed = false;
  let retryTimer = 0;
  function connect() {
    clearTimeout(retryTimer);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${list.dataset.btLive}`);
    socket.addEventListener("open", () => {
      since = null;
      pause = 1000;
      window.Beamtime.live.set("live");
      want(active());
    });
    socket.addEventListener("message", (event) => {
      let said;
      try { said = JSON.parse(event.data); } catch { return; }
      const id = said.job || said.id;
      if (!id) {
        want(active());
        return;
      }
      if (said.state === "submitted") announce(id);
      want([id]);
    });
    socket.addEventListener("close", (event) => {
      // 4401 and 4403: the session or the right is gone; asking again would not bring it back.
      if (closed || event.code === 4401 || event.code === 4403) {
        window.Beamtime.live.set("off");
        return;
      }
      since = since || new Date();
      const long = Date.now() - since.getTime() > 15_000;
      window.Beamtime.live.set(long ? "lost" : "reconnecting", { since, seconds: Math.round(pause / 1000), retry: connect });
      retryTimer = setTimeout(connect, pause);
      pause = Math.min(pause * 2, 15_000);
    });
  }
  window.addEventListener("pagehide", () => { closed = true; });
  connect();

  // Times that grow, and whatever a lost announcement missed.
  setInterval(() => want(active()), 20_000);
  doc.addEventListener("visibilitychange", () => doc.hidden || want(active()));
})();
