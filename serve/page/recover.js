// Recover: what can be saved of a table, as a new file where the server may write; and a comparison with another table.
(function (S) {
  'use strict';
  const { h } = S;

  S.tab('recover', 'Recover', () => true, async function (main, params, signal) {
    const { write } = await S.ask('places', {}, signal);
    const out = h('div', { 'aria-live': 'polite' });
    const differs = h('div', { 'aria-live': 'polite' });
    const base = S.base(params.name).replace(/^.*#/, '').replace(/[^A-Za-z0-9._-]/g, '_').replace(/^[.-]+/, '');
    S.clear(main, h('h1', {}, S.base(params.name)),
      h('section', {}, h('h2', {}, 'Save what can be read'),
        write ? form(params, write, base, out, signal, differs) : h('p', {}, 'This server only reads. ', h('code', {}, 'stoa serve --allow-write DIR'),
          ' lets the page write new files to DIR; in a terminal: ', h('code', {}, 'stoa recover ' + quoted(params.name) + ' -o saved.parquet')), out),
      h('section', {}, h('h2', {}, 'Compare with another table'), compare(params, differs, signal), differs));
    if (params.other) diff(params, params.other, differs, signal);
  });

  const quoted = (s) => (/^[\w./-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'");

  function form(params, write, base, out, signal, differs) {
    const as = h('input', { type: 'text', name: 'as', value: base.replace(/\.\w+$/, '') + '-saved.parquet', spellcheck: 'false', required: true, pattern: '[A-Za-z0-9_][A-Za-z0-9._\\-]*' });
    const nulls = h('input', { type: 'checkbox' });
    const button = h('button', {}, 'Recover');
    return h('form', { class: 'bar', onsubmit: async (e) => {
      e.preventDefault();
      button.disabled = true;
      const bar = h('progress', { max: 1, 'aria-label': 'How much was read' });
      S.clear(out, bar, h('p', { class: 'wait' }, 'Recovering…'));
      try {
        let last = null;
        await S.lines('recover', { name: params.name, at: params.at, as: as.value, nulls: nulls.checked ? 'true' : '' }, signal, (doc) => {
          if (doc.of) bar.value = Math.min(0.99, doc.read / doc.of);
          if (doc.command) last = doc;
        }, true);
        const file = write.replace(/\/$/, '') + '/' + as.value;
        const whole = last && last.status === 0, partly = last && last.status === 3;
        S.clear(out, h('p', { class: whole ? 'good' : 'bad' }, whole ? '✓ Every row was saved.' : partly ? 'Saved, with losses:' : 'Nothing was saved.'),
          partly ? h('ul', {}, last.notes.map((n) => h('li', {}, n))) : null,
          whole || partly ? h('p', {}, h('a', { href: S.go('rows', { name: file }) }, file), ' ',
            h('button', { type: 'button', onclick: () => diff(params, file, differs, signal) }, 'Compare it with the source')) : null,
          last ? S.said(partly ? { ...last, notes: [] } : last) : null);
      } catch (err) {
        if (!signal.aborted) S.clear(out, S.problem(err));
      }
      button.disabled = false;
    } }, h('label', { class: 'field' }, 'as ' + write.replace(/\/$/, '') + '/ ', as), h('label', { class: 'field' }, nulls, ' keep rows with lost cells, as null'), button);
  }

  function compare(params, at, signal) {
    const other = h('input', { type: 'text', value: params.other || '', spellcheck: 'false', placeholder: 'PATH or PATH#TABLE below a place', required: true });
    return h('form', { class: 'bar', onsubmit: (e) => { e.preventDefault(); diff(params, other.value.trim(), at, signal); } },
      h('label', { class: 'field grow' }, 'with ', other), h('button', {}, 'Compare'));
  }

  async function diff(params, other, at, signal) {
    S.clear(at, h('p', { class: 'wait' }, 'Comparing…'));
    try {
      const r = await S.command('diff', { name: params.name, other }, signal);
      const d = r.doc;
      if (!d) return S.clear(at, S.said(r));
      const count = (n) => S.num(n || 0);
      S.clear(at, h('p', { class: d.equal ? 'good' : 'bad' }, d.equal ? '✓ They are the same.' : 'They differ.'),
        h('dl', { class: 'facts' }, S.fact('rows here', count(d.rows_a)), S.fact('rows there', count(d.rows_b)), S.fact('the same', count(d.same)),
          S.fact('changed', count(d.changed)), S.fact('only here', count(d.only_a)), S.fact('only there', count(d.only_b))),
        Object.keys(d.changed_cells || {}).length ? S.table('Changed cells', [{ title: 'column' }, { title: 'cells', right: true }], Object.entries(d.changed_cells).map(([c, n]) => [c, S.num(n)])) : null,
        (d.examples || []).length ? [h('h3', {}, 'For example'), S.table('Examples', [{ title: 'row here' }, { title: 'row there' }, { title: 'column' }, { title: 'here' }, { title: 'there' }],
          d.examples.slice(0, 50).flatMap((e) => (e.cells || [{}]).slice(0, 20).map((c) => [S.num(e.row_a), S.num(e.row_b), c.column || '', (c.a ?? '').slice(0, 80), (c.b ?? '').slice(0, 80)])))] : null,
        S.said(r));
    } catch (err) {
      if (!signal.aborted) S.clear(at, S.problem(err));
    }
  }
})(window.stoa);
