// Ranking of the search's results. Sphinx alone lists only pages that have every word that was typed; here a page needs
// about half of them. Sphinx loads this file after its searchtools.js (html_search_scorer in conf.py), of which it
// replaces two functions: Search._performSearch and Search.makeSearchSummary. The index is Sphinx's.
(() => {
  // Words that mean the same to somebody who asks.
  const ALIKE = [
    "adversary attacker hacker intruder",
    "annual month quarter year",
    "anonymise anonymize anonymity anonymous",
    "average avg mean",
    "band bin",
    "begin beginner introduction start tutorial",
    "big large huge",
    "blank empty",
    "bound limit range",
    "cache remember save store",
    "chart figure graph picture plot",
    "choice choose pick",
    "clamp extreme outlier",
    "cloud firewall internet network offline proxy",
    "column variable",
    "contingency crosstab crosstabulation tabulation",
    "corr correlation",
    "cost price",
    "count frequency",
    "database server",
    "decile percentile quantile quartile",
    "definition glossary term",
    "delete erase remove withdraw",
    "dependency requirement",
    "divide quotient rate ratio",
    "eps epsilon",
    "excel spreadsheet xlsx",
    "explain explanation",
    "exposed exposure risk risky",
    "family household",
    "fast performance slow speed",
    "female gender sex woman women",
    "filter subgroup subset",
    "increase raise",
    "join merge",
    "largest max maximum upper",
    "limit quota",
    "lower min minimum smallest",
    "many multiple several",
    "missing na nan null",
    "noise noisy",
    "percent percentage proportion share",
    "postgres postgresql",
    "publication publish release",
    "query question",
    "randomise randomize",
    "record row",
    "refresh rerun",
    "regression slope",
    "safe secure security",
  ].map((group) => group.split(" "));

  // How much a word counts, besides the more the rarer it is: of a page's title or name, of a section's heading, or of
  // the text, where pages with more than so many different words count less; and how much a word that is alike.
  const WEIGHTS = { title: 5, heading: 2, text: 1, alike: 0.8 };
  const USUAL_WORDS = 350;
  // Pages that repeat what others say, and pages for those who prove, build or compare.
  const LESS = [
    [/^(index|architecture|benchmarks|guarantees|numbers|reproducing|reference\/api)$/, 0.5],
    [/^(reference\/options|examples\/.*)$/, 0.75],
  ];
  const ENOUGH = 0.4; // of the weight of all words: for a page, where its title counts twice, and to link a heading
  const SHOWN = 240; // letters of the text below each result

  const stem = (word) => new Stemmer().stemWord(word.toLowerCase());
  const stems = (text) => new Set(splitQuery(text).map(stem));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const largest = (items, by) => {
    const sizes = items.map(by);
    return items[sizes.indexOf(Math.max(...sizes))];
  };
  const pagesWith = (index, word) => (Object.hasOwn(index, word) ? [index[word]].flat() : []);

  // The pages of the index, with their titles' and headings' words.
  const indexedPages = () => {
    const { alltitles, docnames, filenames, terms, titles } = Search._index;
    const pages = docnames.map((name, number) => ({
      number,
      name,
      file: filenames[number],
      title: titles[number],
      words: stems(name.includes("/") ? titles[number] : `${titles[number]} ${name}`),
      headings: [],
      size: 0,
    }));
    for (const word of Object.keys(terms)) for (const number of pagesWith(terms, word)) pages[number].size += 1;
    for (const [heading, places] of Object.entries(alltitles))
      for (const [number, id] of places) if (id) pages[number].headings.push({ heading, id, words: stems(heading) });
    return pages;
  };

  // What was asked for: each typed word that any page knows, with the words that stand for it, how much it counts on
  // which page, and how rare it is.
  const askedWords = (typed, pages) => {
    const { terms, titleterms } = Search._index;
    const known = Object.keys({ ...terms, ...titleterms });
    const asked = [...typed].map((word) => {
      const alike = ALIKE.map((group) => group.map(stem)).filter((group) => group.includes(word)).flat();
      const begun = known.includes(word) || word.length < 3 ? [] : known.filter((each) => each.startsWith(word));
      const forms = new Map(alike.map((each) => [each, WEIGHTS.alike]));
      for (const each of [word, ...begun]) forms.set(each, 1);
      const places = new Map();
      const put = (number, weight) => places.set(number, Math.max(weight, places.get(number) ?? 0));
      for (const [form, share] of forms) {
        for (const number of pagesWith(terms, form))
          put(number, share * WEIGHTS.text * Math.min(1, 2 / (1 + pages[number].size / USUAL_WORDS)));
        for (const number of pagesWith(titleterms, form)) put(number, share * WEIGHTS.heading);
        for (const page of pages) if (page.words.has(form)) put(page.number, share * WEIGHTS.title);
      }
      return { forms, places, rarity: Math.log(1 + pages.length / places.size) };
    });
    return asked.filter(({ places }) => places.size);
  };

  // How much of what was asked for is among these words.
  const within = (words, asked) => {
    const shares = ({ forms }) => [...forms].map(([form, share]) => (words.has(form) ? share : 0));
    return sum(asked.map((each) => each.rarity * Math.max(...shares(each))));
  };

  const rankedPages = (asked, pages) => {
    const whole = within({ has: () => true }, asked);
    const ranked = pages.map((page) => {
      const has = asked.filter(({ places }) => places.has(page.number));
      const titled = within(page.words, asked);
      const covered = Math.min(1, (sum(has.map(({ rarity }) => rarity)) + titled) / whole);
      const best = largest(page.headings, (each) => within(each.words, asked));
      const headed = best ? within(best.words, asked) : 0;
      const [, factor] = LESS.find(([names]) => names.test(page.name)) ?? [null, 1];
      const placed = sum(has.map(({ rarity, places }) => rarity * places.get(page.number)));
      const score = covered * factor * (placed + headed);
      const section = headed > titled && headed >= whole * ENOUGH;
      const title = section ? `${page.title} > ${best.heading}` : page.title;
      return { covered, result: [page.name, title, section ? `#${best.id}` : "", null, score, page.file, "text"] };
    });
    const found = ranked.filter(({ covered }) => covered > 0);
    const enough = found.filter(({ covered }) => covered >= ENOUGH);
    return (enough.length ? enough : found).map(({ result }) => result).sort((one, other) => other[4] - one[4]);
  };

  // Entries of the reference whose names have all that was typed, and the one whose name it is, if there is any. A lone
  // word is a public function, method or class: nobody looks for a property by typing "table".
  const namedEntries = (query, typed) => {
    const written = query.trim().replace(/\(.*$/, "").replace(/\s+/g, ".");
    const endsWith = (name, end) => `.${name}`.endsWith(`.${end}`);
    const last = (name) => name.toLowerCase().split(".").at(-1);
    const found = [...typed]
      .filter((word) => word.length > 2)
      .flatMap((word) => Search.performObjectSearch(word, typed).filter(([, name]) => last(name).includes(word)))
      .filter(([, name], place, all) => all.findIndex((other) => other[1] === name) === place)
      .filter(([, name]) => [...typed].every((word) => name.toLowerCase().includes(word)));
    const plain = /^[a-z]+$/.test(written);
    const unlikely = ([, name, , kind]) => name.includes("._") || /^Python (attribute|data|property)/.test(kind);
    const exact = found
      .filter(([, name]) => endsWith(name.toLowerCase(), written.toLowerCase()))
      .filter((entry) => !plain || !unlikely(entry));
    const named = largest(exact, ([, name]) => endsWith(name, written) / 2 - name.split(".").length);
    // A private module is no part of the name that is shown.
    const shown = (entry) => entry.with(1, entry[1].replace(/^.*\._.*?\.(?=[A-Z])/, ""));
    return { named: named ? [shown(named)] : [], others: found.filter((entry) => entry !== named).map(shown) };
  };

  let asked = []; // by this page's only query

  // The results, the best one last: the entry whose name was typed, pages, other entries.
  Search._performSearch = (query, typed, excluded, highlighted, objectTerms) => {
    document.getElementById("search-progress")?.replaceChildren();
    const pages = indexedPages();
    asked = askedWords(typed, pages);
    const { named, others } = namedEntries(query, objectTerms);
    return [...named, ...rankedPages(asked, pages), ...others].reverse();
  };

  // The part of a page or section that has most of what was asked for, without the title, which stands above it.
  Search.makeSearchSummary = (html, typed, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const others = "h1, nav, footer, script, style, .headerlink, .bd-sidebar-secondary";
    page.querySelectorAll(others).forEach((each) => each.remove());
    page.querySelectorAll("h2, h3, h4, p, li, dt, dd, td, th, pre").forEach((each) => each.append(" "));
    const main = page.querySelector('[role="main"]');
    const text = ((anchor && main?.querySelector(anchor)) || main || page.body).textContent.replace(/\s+/g, " ");
    const hits = [...text.matchAll(/[\p{Letter}\p{Number}_]+/gu)]
      .map(({ 0: word, index }) => ({ index, word: stem(word) }))
      .filter(({ word }) => asked.some(({ forms }) => forms.has(word)));
    const near = (index, place) => hits.slice(place, place + 20).filter((hit) => hit.index < index + SHOWN - 80);
    const inside = ({ index }, place) => within(new Set(near(index, place).map(({ word }) => word)), asked);
    const start = text.lastIndexOf(" ", (largest(hits, inside)?.index ?? 0) - 60) + 1;
    const summary = document.createElement("p");
    summary.classList.add("context");
    const shown = text.slice(start, start + SHOWN).trim();
    summary.textContent = `${start ? "... " : ""}${shown}${start + SHOWN < text.length ? " ..." : ""}`;
    return summary;
  };
})();
