// A word that stands nowhere would empty the results: search again without such words, and, if the others stand on no
// page together, without the last one.
document.addEventListener("DOMContentLoaded", () => {
  const asked = new URLSearchParams(window.location.search);
  const words = (asked.get("q") || "").trim().split(/\s+/);
  if (!document.getElementById("search-results") || words.length < 2) return;
  const again = (kept) => {
    asked.set("q", kept.join(" "));
    window.location.replace(`?${asked}`);
  };
  let rounds = 0;
  const waiting = setInterval(() => {
    const index = Search._index;
    if (!index || (rounds += 1) < 4) return;
    const stems = (word) => new Stemmer().stemWord(word.toLowerCase());
    const kept = words.filter((word) => [index.terms, index.titleterms].some((terms) => stems(word) in terms));
    const found = document.querySelectorAll("#search-results li").length;
    if (found || rounds > 40) clearInterval(waiting);
    if (found) return;
    if (kept.length && kept.length < words.length) again(kept);
    else if (rounds > 12) again(words.slice(0, -1));
  }, 100);
});
