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

  // On a phone the filters scroll sideways; the chosen one is shown.
  doc.querySelector("#job-filters [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  const rowOf = (id) => doc.getElementById(`job-${id}`);
  const active = () => [...list.querySelectorAll("[data-bt-active='yes']")].map((row) => row.dataset.btJob);

  // --- Fetch what changed, at most twice a second, never over something that is being used -------------------------------
  const due = new Set();
  let asksNew = false;
  let timer = 0;
  let busy = false;
  function want(ids) {
    for (const id of ids) {
      if (rowOf(id)) due.add(id);
      // A job that is not in view may be new; only the first page asks how many are.
      else asksNew = "btNewest" in list.dataset;
    }
    if ((due.size || asksNew) && !timer && !busy) timer = setTimeout(refresh, 500);
  }
  const inUse = (row) => {
    const marked = doc.getSelection();
    return row.contains(doc.activeElement) || (!marked.isCollapsed && marked.containsNode(row, true));
  };
  async function refresh() {
    timer = 0;
    if (doc.hidden || busy) return;
    const ids = [...due].slice(0, 50);
    if (!ids.length && !asksNew) return;
    busy = true;
    try {
      const asked = new URLSearchParams(ids.map((id) => ["id", id]));
      if ("btNewest" in list.dataset) asked.append("newer", list.dataset.btNewest);
      const join = list.dataset.btRows.includes("?") ? "&" : "?";
      const answer = await fetch(list.dataset.btRows + join + asked, { headers: { "HX-Request": "true" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ids) {
        const [old, row] = [rowOf(id), fresh.getElementById(`job-${id}`)];
        if (old && inUse(old)) continue;
        due.delete(id);
        if (old && row) old.replaceWith(row);
      }
      asksNew = false;
      announce(Number(fresh.getElementById("arrived")?.dataset.count || 0));
      const [counts, now] = [doc.getElementById("job-filters"), fresh.getElementById("job-filters")];
      if (counts && now && !counts.contains(doc.activeElement)) counts.replaceWith(now);
    } catch { /* the next tick tries again; the live mark says that there is trouble */ }
    busy = false;
    if (due.size || asksNew) timer = setTimeout(refresh, 2000);
  }

  // --- New jobs: a bar with their number; only the first page shows it ------------------------------------------------------
  const bar = doc.getElementById("new-jobs");
  function announce(number) {
    if (!bar || !("btNewest" in list.dataset)) return;
    const link = bar.querySelector("a");
    link.textContent = number === 1 ? link.dataset.one : link.dataset.many.replace("{n}", String(number));
    bar.hidden = number === 0;
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
      if (said.job) {
        want([said.job]);
      } else {
        // Much has changed, or something was missed.
        asksNew = "btNewest" in list.dataset;
        want(active());
      }
    });
    socket.addEventListener("close", (event) => {
      // The session or the right is gone (portal/live/README.md); asking again would not bring it back.
      if (closed || [4400, 4401, 4403, 4404].includes(event.code)) {
        window.Beamtime.live.set("off");
        if (event.code === 4401) window.Beamtime.alert(document.getElementById("bt-alerts").dataset.session, "warning");
        if (event.code === 4403) location.reload();
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
