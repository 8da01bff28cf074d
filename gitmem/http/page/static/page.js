// What helps while reading and typing. Every page works without it.
"use strict";
(() => {
  const POLL = 3000;
  const encoder = new TextEncoder();
  const live = document.getElementById("live");
  const say = (text) => { if (live.textContent !== text) live.textContent = text; };

  // Bytes while typing, counted as they will be stored.
  function count(counter) {
    const field = document.getElementById(counter.dataset.for);
    const limit = Number(counter.dataset.limit);
    const show = () => {
      const bytes = encoder.encode(field.value).length;
      counter.querySelector(".now").textContent = bytes.toLocaleString("en-US");
      counter.classList.toggle("over", bytes > limit);
      field.toggleAttribute("aria-invalid", bytes > limit);
      if (bytes > limit) field.setAttribute("aria-invalid", "true");
    };
    field.addEventListener("input", show);
    show();
  }

  // A form that holds something typed is neither replaced nor left by accident.
  const isTyped = (form) => [...form.elements].some((field) =>
    field.type === "checkbox" ? field.checked !== field.defaultChecked
      : "defaultValue" in field && field.type !== "hidden" && field.value !== field.defaultValue);
  const typedForms = () => [...document.querySelectorAll("form[data-typed]")];
  let leaving = false;
  addEventListener("submit", (event) => { leaving = "typed" in event.target.dataset; });
  addEventListener("pageshow", () => { leaving = false; });
  addEventListener("beforeunload", (event) => {
    if (!leaving && typedForms().some(isTyped)) event.preventDefault();
  });

  // Times in the reader's own zone.
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  function dress(root) {
    for (const time of root.querySelectorAll("time")) {
      time.title = time.dateTime;
      time.textContent = local.format(new Date(time.dateTime));
    }
    for (const counter of root.querySelectorAll(".counter[data-for]")) count(counter);
  }

  // What was saved elsewhere appears by itself; where somebody types, a word says so instead.
  const plain = (main) => main.innerHTML;
  let known = null;
  async function refresh(main) {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("content");
    if (!fresh?.dataset.tip) return;
    main.dataset.tip = fresh.dataset.tip;
    const form = typedForms().find((found) => found.dataset.revision);
    const freshForm = fresh.querySelector("form[data-revision]");
    if (form && !freshForm) say("This document is not there any more. Your text stays here.");
    else if (form && form.dataset.revision !== freshForm.dataset.revision) {
      say("Somebody has saved this document meanwhile. Your text stays; when you save, you see both.");
    }
    if (typedForms().length || plain(fresh) === known || main.querySelector("input:focus")) return;
    known = plain(fresh);
    const at = main.contains(document.activeElement) ? document.activeElement : null;
    const href = at && at.getAttribute("href");
    fresh.querySelector(".note.good")?.remove();
    main.replaceChildren(...fresh.childNodes);
    document.title = page.title;
    dress(main);
    if (href) main.querySelector(`[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
    say("Updated: something was saved.");
    setTimeout(() => say(""), 4000);
  }

  async function watch(main) {
    for (;;) {
      await new Promise((done) => setTimeout(done, POLL));
      // Whoever is marking a passage keeps it.
      if (document.hidden || !getSelection().isCollapsed) continue;
      try {
        const answer = await fetch(main.dataset.live, { headers: { accept: "application/json" } });
        if (answer.status === 401) return say("You are signed out. Copy what you have typed before you load the page again.");
        if (answer.ok && (await answer.json()).tip !== main.dataset.tip) await refresh(main);
      } catch { /* The server is away; it may come back. */ }
    }
  }

  const main = document.getElementById("content");
  const shown = new URL(location.href);
  if (shown.searchParams.has("done")) {
    shown.searchParams.delete("done");
    history.replaceState(history.state, "", shown);
  }
  known = plain(main);
  dress(document);
  if (main.dataset.live && main.dataset.tip) watch(main);
})();
