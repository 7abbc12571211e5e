// Order of the search's results: pages for people who ask before those for people who prove, build or compare.
const LAST = new Set(["architecture", "numbers", "reproducing", "benchmarks", "reference/options"]);
var Scorer = {
  score: ([page, title, anchor, descr, score]) => (LAST.has(page) ? score * 0.4 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
