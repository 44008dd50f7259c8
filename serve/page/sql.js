// SQL: a query over the tables of the places, by the program stoa-sql.
(function (S) {
  'use strict';
  const { h } = S;

  S.tab('sql', 'SQL', () => S.hasSQL, async function (main, params, signal) {
    const text = h('textarea', { rows: 6, spellcheck: 'false', autocapitalize: 'off', 'aria-label': 'Query' });
    text.value = params.query || "select *\nfrom '" + params.name.replaceAll("'", "''") + "'\nlimit 100";
    const out = h('section', { 'aria-live': 'polite' });
    const button = h('button', { type: 'submit' }, 'Run');
    const form = h('form', { class: 'sql', onsubmit: (e) => { e.preventDefault(); run(); } }, text,
      h('p', { class: 'bar' }, button, h('span', { class: 'dim' }, 'Ctrl+Enter runs it. A table is a path in single quotes; the SQL is that of DuckDB.')));
    text.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        run();
      }
    });
    S.clear(main, h('h1', {}, S.base(params.name)), form, out);
    if (params.query) await run();

    async function run() {
      S.remember('sql', { ...params, query: text.value });
      button.disabled = true;
      S.clear(out, h('p', { class: 'wait' }, 'Running…'));
      try {
        S.clear(out, result(await S.ask('sql', { query: text.value }, signal)));
      } catch (err) {
        if (!signal.aborted) S.clear(out, S.problem(err));
      }
      button.disabled = false;
    }
  });

  function result(r) {
    const failed = r.status !== 0 && r.status !== 3;
    return [
      failed ? h('pre', { class: 'problem', role: 'alert', tabindex: '0' }, (r.notes || ['It failed.']).join('\n')) : null,
      r.status === 3 ? h('p', { class: 'bad' }, 'Damage was met.') : null,
      r.rows.length ? S.table('Rows of the query', r.columns.map((c) => ({ title: c, right: r.rows.every((row) => row[r.columns.indexOf(c)] === null || /^-?[\d.]+(e[-+]?\d+)?$/i.test(row[r.columns.indexOf(c)])) })),
        r.rows.map((row) => row.map((c) => (c === null ? h('i', { class: 'dim' }, 'null') : c)))) : failed ? null : h('p', { class: 'dim' }, 'No rows.'),
      r.cut ? h('p', {}, 'These are the first ' + S.plural(r.rows.length, 'row') + '; there are more.') : r.rows.length ? h('p', { class: 'dim' }, S.plural(r.rows.length, 'row')) : null,
      S.said(failed ? { ...r, notes: [] } : r),
    ];
  }
})(window.stoa);
