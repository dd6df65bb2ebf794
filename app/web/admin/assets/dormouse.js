// Looks again at what waits while somebody looks: not in a hidden tab, not after ten minutes without a touch.
(() => {
  "use strict";
  const EVERY = 30_000;
  const LONGEST = 600_000;
  const address = document.getElementById("pulse")?.dataset.refresh;
  let touched = Date.now();
  let isAsking = false;

  const isSeen = () => document.visibilityState === "visible" && Date.now() - touched < LONGEST;

  async function look() {
    const held = document.getElementById("pulse");
    if (!isSeen() || isAsking || held.contains(document.activeElement)) return;
    isAsking = true;
    try {
      const answer = await fetch(address, { redirect: "error", headers: { Accept: "text/html" } });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("pulse");
        if (fresh) held.replaceWith(fresh);
      } else if (answer.status < 500) clearInterval(timer);
    } catch {
      clearInterval(timer);
    } finally {
      isAsking = false;
    }
  }

  if (!address) return;
  for (const event of ["pointerdown", "keydown", "scroll"]) {
    addEventListener(event, () => (touched = Date.now()), { passive: true });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") touched = Date.now();
  });
  const timer = setInterval(look, EVERY);
})();
