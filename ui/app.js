"use strict";
// Shows the peer's status as it changes. Everything comes from the local API; nothing else is loaded.

const CHART_SECONDS = 300;
const RECENT_PAGES = 14;
const DOMAIN_ROWS = 14;
const DOMAIN_PERIOD_MS = 5000;

const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const rates = [];
let paused = false;

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) { count /= 1000; unit += 1; }
  return `${count.toFixed(count < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

function showStatus(status) {
  paused = status.state === "paused";
  at("reason").textContent = status.attention ?? status.reason;
  at("reason").classList.toggle("bad", Boolean(status.attention));
  at("toggle").hidden = false;
  at("toggle").textContent = paused ? "Resume" : "Pause";
  at("pages").textContent = whole.format(status.totals.pages);
  at("rate").textContent = status.pages_per_second.toFixed(status.pages_per_second < 10 ? 1 : 0);
  at("queued").textContent = whole.format(status.queued);
  at("domains").textContent = whole.format(status.domains);
  at("bytes").textContent = bytes(status.totals.bytes);
  at("memory").textContent = bytes(status.memory_bytes);
  rates.push(status.pages_per_second);
  if (rates.length > CHART_SECONDS) rates.shift();
  drawChart();
}

/** The chart begins with a minute and widens to five as samples come in. */
function drawChart() {
  const shown = Math.max(60, rates.length);
  at("span").textContent = shown > 60 ? `last ${Math.ceil(shown / 60)} minutes` : "last minute";
  const top = Math.max(1, ...rates) * 1.1;
  const x = (i) => ((600 * (shown - rates.length + i)) / (shown - 1)).toFixed(1);
  const points = rates.map((rate, i) => `${x(i)},${(120 - (rate / top) * 116).toFixed(1)}`);
  if (points.length < 2) return;
  at("line").setAttribute("d", `M${points.join("L")}`);
  at("area").setAttribute("d", `M${x(0)},120L${points.join("L")}L600,120Z`);
}

function showPage(page) {
  const row = document.createElement("li");
  const url = Object.assign(document.createElement("span"), { className: "url", textContent: page.url.replace(/^https?:\/\//, ""), title: page.url });
  const what = Object.assign(document.createElement("span"), { className: "what" });
  what.textContent = page.outcome === "page" ? bytes(page.bytes) : page.outcome;
  row.append(url, what);
  const list = at("recent");
  list.querySelector(".empty")?.remove();
  list.prepend(row);
  while (list.children.length > RECENT_PAGES) list.lastChild.remove();
}

async function showDomains() {
  const answer = await fetch(`/api/domains?limit=${DOMAIN_ROWS}`);
  if (!answer.ok) return;
  const rows = (await answer.json()).map((domain) => {
    const row = document.createElement("tr");
    for (const text of [domain.domain, whole.format(domain.fetched), whole.format(domain.queued), domain.state]) {
      row.append(Object.assign(document.createElement("td"), { textContent: text, title: text }));
    }
    return row;
  });
  if (rows.length > 0) at("rows").replaceChildren(...rows);
}

async function addSeed(event) {
  event.preventDefault();
  const url = at("url").value.trim();
  if (url === "") return;
  const answer = await fetch("/api/seeds", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ urls: [url] }),
  });
  const body = await answer.json();
  const refused = body.refused?.[0];
  at("seed-answer").textContent = body.error ?? (refused ? `Not added: ${refused.why}` : "Added.");
  if (answer.ok && !refused) at("url").value = "";
}

function listen() {
  const events = new EventSource("/api/events");
  events.addEventListener("status", (event) => showStatus(JSON.parse(event.data)));
  events.addEventListener("page", (event) => showPage(JSON.parse(event.data)));
  events.onerror = () => {
    at("reason").textContent = "The peer does not answer. Is it still running? Trying again…";
    at("reason").classList.add("bad");
  };
}

at("toggle").addEventListener("click", () => fetch(paused ? "/api/resume" : "/api/pause", { method: "POST" }));
at("seed").addEventListener("submit", addSeed);
fetch("/api/pages").then((answer) => answer.json()).then((pages) => pages.slice(-RECENT_PAGES).forEach(showPage));
setInterval(showDomains, DOMAIN_PERIOD_MS);
showDomains();
listen();
