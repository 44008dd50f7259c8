package session

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/pred"
	"stoa/sql/duck"
	"stoa/sql/engine"
	"stoa/sql/tables"
)

// A reference is a place in a statement where a table is used. Each has its own function in DuckDB, so the plan shows
// which filter belongs to which reference.
type reference struct {
	ask    tables.Ask
	source *tables.Source
	where  *pred.Expr // the filter over it in the plan
	// What the plan needs of it, for explain.
	columns []string
	empty   bool // no column is needed: rows are counted
	planned int  // number of uses in the plan: with several they cannot be told apart
}

// maxReferences is the maximum number of references of a statement with a function of their own.
const maxReferences = 100

// maxCalls is the maximum number of calls of the function stoa in a statement.
const maxCalls = 30

// scanName returns the name of the function of reference i.
func scanName(i int) string { return fmt.Sprintf("stoa_table_%d", i) }

// scanNumber is the reverse of scanName; false: it is another name.
func scanNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(strings.ToLower(name), "stoa_table_")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil
}

// planNode is an operator of DuckDB's plan, as EXPLAIN (FORMAT json) has it.
type planNode struct {
	Name     string                     `json:"name"`
	Children []planNode                 `json:"children"`
	Extra    map[string]json.RawMessage `json:"extra_info"`
}

// texts returns the texts of a member, which is one or a list.
func (n *planNode) texts(name string) (out []string, ok bool) {
	raw, ok := n.Extra[name]
	if !ok {
		return nil, false
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil, true
		}
		return []string{one}, true
	}
	return out, json.Unmarshal(raw, &out) == nil
}

// plan gets DuckDB's plan, and notes for each reference what is needed of it. Statements that cannot be explained stay
// as they are.
func (s *Session) plan(ctx context.Context, statement string) {
	s.begin()
	// These would put the values of in (…), and the filters beside it, over a join. A filter may be taken from any
	// plan: no other plan needs the rows that it drops.
	if s.db.Do(ctx, "SET disabled_optimizers = 'in_clause'") == nil {
		defer s.db.Do(context.WithoutCancel(ctx), "RESET disabled_optimizers")
	}
	st, err := s.db.Prepare(ctx, "EXPLAIN (FORMAT json) "+statement)
	if err != nil {
		return
	}
	defer st.Close()
	r, err := st.Run(ctx)
	if err != nil {
		return
	}
	defer r.Close()
	text, err := planText(r)
	if err != nil {
		return
	}
	var roots []planNode
	if json.Unmarshal([]byte(text), &roots) != nil {
		return
	}
	for i := range roots {
		s.note(&roots[i], nil)
	}
}

// planText returns the document in the second column of EXPLAIN's result.
func planText(r *engine.Result) (string, error) {
	sc, err := r.Schema()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for batch, err := range r.Batches(sc) {
		if err != nil {
			return "", err
		}
		c := batch.Column(int(batch.NumCols()) - 1)
		for i := range c.Len() {
			b.WriteString(c.ValueStr(i))
		}
	}
	return b.String(), nil
}

// note traverses a plan. above is the operator directly over the node; nil: there is none.
func (s *Session) note(n *planNode, above *planNode) {
	if ref := s.referenceOf(n); ref != nil {
		ref.planned++
		ref.columns, _ = n.texts("Projections")
		ref.where, ref.empty = nil, false
		switch {
		case above == nil:
		case above.Name == "FILTER":
			ref.where = s.filterOver(ref, above)
		case above.Name == "UNGROUPED_AGGREGATE":
			aggregates, _ := above.texts("Aggregates")
			ref.empty = len(aggregates) == 1 && aggregates[0] == "count_star()"
		}
	}
	for i := range n.Children {
		s.note(&n.Children[i], n)
	}
}

func (s *Session) referenceOf(n *planNode) *reference {
	names, _ := n.texts("Function")
	for _, name := range append(names, strings.TrimSpace(n.Name)) {
		if i, ok := scanNumber(name); ok {
			return s.references[i]
		}
	}
	return nil
}

func (s *Session) filterOver(ref *reference, filter *planNode) *pred.Expr {
	texts, _ := filter.texts("Expression")
	columns := map[string]arrow.Field{}
	fields := ref.source.Table.Schema().Fields()
	for i, name := range duck.Names(fields) {
		columns[name] = fields[i]
	}
	if len(columns) != len(fields) || ref.source.HasAlike() {
		return nil
	}
	var all []*pred.Expr
	for _, t := range texts {
		all = append(all, filterOf(t, columns))
	}
	return pred.And(all...)
}

// explaining is a statement that explains another.
type explaining struct {
	query string
	form  string // of the plan: "text", "json", …
}

// explains is what a statement explains; nil: it explains nothing.
func explains(text string, t []token) *explaining {
	if len(t) < 2 || !t[0].is("explain") {
		return nil
	}
	x := &explaining{form: "text"}
	at := 1
	if t[1].is("(") {
		for at < len(t) && !t[at].is(")") {
			if at++; at+1 < len(t) && t[at].is("format") {
				x.form = strings.ToLower(t[at+1].word)
			}
		}
		at++
	}
	if at < len(t) && t[at].is("analyze") {
		at++
	}
	if at >= len(t) {
		return nil
	}
	x.query = text[t[at].from:]
	return x
}

// explain shows DuckDB's plan, and what is read of each table: after a plan that is text, or in one that is JSON.
func (s *Session) explain(ctx context.Context, text, form string) error {
	r, done, err := s.run(ctx, text)
	if err != nil {
		return err
	}
	defer done()
	plan, err := planText(r)
	if err != nil {
		return s.reason(err)
	}
	plan = strings.TrimRight(plan, "\n") + "\n"
	switch form {
	case "text":
		tables, err := s.explained(ctx)
		if err != nil {
			return err
		}
		plan += tables
	case "json":
		if plan, err = s.explainedIn(ctx, plan); err != nil {
			return err
		}
	}
	return s.text(ctx, plan)
}

// explainedIn adds to the plan, for each table, what is read of it and what is skipped, as the member stoa of its scan.
func (s *Session) explainedIn(ctx context.Context, plan string) (string, error) {
	d := json.NewDecoder(strings.NewReader(plan))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return "", fault.Bugf("DuckDB's plan is no JSON: %v", err)
	}
	if err := s.addTo(ctx, doc); err != nil {
		return "", err
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	err := e.Encode(doc)
	return b.String(), err
}

func (s *Session) addTo(ctx context.Context, doc any) error {
	switch doc := doc.(type) {
	case []any:
		for _, one := range doc {
			if err := s.addTo(ctx, one); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := s.addTo(ctx, doc["children"]); err != nil {
			return err
		}
		extra, _ := doc["extra_info"].(map[string]any)
		name, _ := extra["Function"].(string)
		i, ok := scanNumber(name)
		ref := s.references[i]
		if !ok || ref == nil || ref.planned != 1 {
			return nil
		}
		e, err := ref.explanation(ctx)
		if err != nil {
			return err
		}
		doc["stoa"] = map[string]any{"table": ref.ask.Address, "columns": ref.read(), "scan": verbs.ExplanationDoc(e)}
	}
	return nil
}

// read are the columns that are read, by their names in DuckDB.
func (ref *reference) read() []string {
	if ref.empty || ref.columns == nil {
		return []string{}
	}
	return ref.columns
}

// Explained describes what of each table of the last statement is read, and what is skipped.
func (s *Session) explained(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, i := range slices.Sorted(maps.Keys(s.references)) {
		ref := s.references[i]
		if ref.planned != 1 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", ref.ask.Address)
		columns := strings.Join(ref.columns, ", ")
		if ref.empty {
			columns = "none: rows are counted"
		}
		fmt.Fprintf(&b, "  columns   %s\n", columns)
		if where := pred.And(ref.source.Where, ref.where); where != nil {
			fmt.Fprintf(&b, "  filter    %s\n", where)
		}
		if err := levels(ctx, &b, ref); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func levels(ctx context.Context, b *strings.Builder, ref *reference) error {
	e, err := ref.explanation(ctx)
	if err != nil {
		return err
	}
	for _, l := range e.Levels {
		fmt.Fprintf(b, "  %s\n", levelLine(l))
	}
	return nil
}

// explanation is what the library says of the scan.
func (ref *reference) explanation(ctx context.Context) (*stoa.Explanation, error) {
	spec := stoa.ScanSpec{Columns: []string{}, Filter: pred.And(ref.source.Where, ref.where)}
	fields := ref.source.Table.Schema().Fields()
	for i, name := range duck.Names(fields) {
		if slices.Contains(ref.read(), name) {
			spec.Columns = append(spec.Columns, pred.JoinPath(fields[i].Name))
		}
	}
	return ref.source.Table.Explain(ctx, spec, false)
}

// levelLine describes one level of a scan: what is read of it, and why the rest is not.
func levelLine(l stoa.ExplainLevel) string {
	name := string(l.Level)
	if l.Column != "" {
		name += " of " + l.Column
	}
	s := fmt.Sprintf("%-9s %s of %s", name, number(l.Read), number(l.Considered))
	if l.Bytes > 0 {
		s += fmt.Sprintf(", %d of %d bytes", l.Bytes, l.Total)
	}
	for _, r := range l.Skipped {
		s += fmt.Sprintf("; skipped by %s: %d", r.Why, r.N)
	}
	return s
}

func number(n int64) string {
	if n < 0 {
		return "an unknown number"
	}
	return strconv.FormatInt(n, 10)
}
