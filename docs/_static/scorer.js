// Order of the search's results: pages whose title, a question, has the words that were asked for, and pages for people
// who ask before those for people who prove, build or compare.
const LAST = new Set(["architecture", "numbers", "reproducing", "reference/api", "reference/options"]);
const ASKED = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().match(/[a-z]{3,}/g) || [];
var Scorer = {
  score: ([page, title, anchor, descr, score]) => {
    const named = ASKED.filter((word) => title.toLowerCase().includes(word)).length;
    return (score + 20 * named) * (LAST.has(page) ? 0.4 : 1);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
