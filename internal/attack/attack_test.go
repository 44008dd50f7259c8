package attack

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attack is the state of one run.
type attack struct {
	stoa   command
	root   string
	temps  int
	made   map[string]*fixture
	seen   map[string]int            // counts by verb and status
	class  map[string]map[string]int // by fixture: counts of harms and outcomes
	finds  map[string]*find          // by the key that alike returns
	cases  int
	equal  int // number of cases in which every verb answered as for the intact place
	refuse map[string]string
}

type find struct {
	n      int
	say    string
	replay string
}

func newAttack(c command, root string) *attack {
	return &attack{stoa: c, root: root, made: map[string]*fixture{}, seen: map[string]int{},
		class: map[string]map[string]int{}, finds: map[string]*find{}, refuse: map[string]string{}}
}

func (a *attack) temp(name string) string {
	a.temps++
	dir := filepath.Join(a.root, name+strconv.Itoa(a.temps))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		panic(err)
	}
	return dir
}

// verb runs a reading verb on the copy of f in dir.
func (a *attack) verb(f *fixture, dir, verb string, args ...string) answer {
	return a.stoa.run(slices.Concat([]string{verb, f.at(dir)}, f.reading, args, []string{"--no-progress"})...)
}

// try harms a copy of f and judges the answers of the verbs. The trial is nil if the harms do not fit.
func (a *attack) try(f *fixture, harms []harm, seed uint64, all bool) (*trial, error) {
	work := filepath.Join(a.root, "case")
	if err := os.RemoveAll(work); err != nil {
		return nil, err
	}
	dir := filepath.Join(work, "copy")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := f.copyTo(dir); err != nil {
		return nil, err
	}
	touched, fit, err := f.apply(dir, harms)
	if err != nil || !fit || f.goneFrom(dir) {
		return nil, err
	}
	c := &trial{a: a, f: f, dir: dir, touched: touched}
	for _, h := range harms {
		if h.op == "stale" {
			c.staled = append(c.staled, f.files[h.file])
		}
	}
	c.moved = slices.ContainsFunc(harms, func(h harm) bool { return slices.Contains(special[:4], h.op) })
	c.shifted = len(harms) == 1 && slices.Contains([]string{"insert", "drop", "double"}, harms[0].op) && f.bounded() &&
		!f.padded(dir) && !f.likeCut(harms[0])
	c.judge(rand.New(rand.NewPCG(seed, 3)), all)
	return c, nil
}

// goneFrom reports whether none of the files of f is left in a copy: about missing files no verb can report anything.
func (f *fixture) goneFrom(dir string) bool {
	return !slices.ContainsFunc(f.files, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// one runs one case; its seed determines harms and verbs.
func (a *attack) one(f *fixture, seed uint64) error {
	harms := f.newHarms(rand.New(rand.NewPCG(seed, 4)))
	if len(harms) == 0 {
		return nil
	}
	c, err := a.try(f, harms, seed, false)
	if err != nil || c == nil {
		return err
	}
	a.cases++
	how := "equal"
	switch {
	case len(c.finds) > 0:
		how = "find"
	case c.excused:
		how = "excused"
	case c.guessed:
		how = "guessed"
	case c.reported:
		how = "reported"
	default:
		a.equal++
	}
	if a.class[f.name] == nil {
		a.class[f.name] = map[string]int{}
	}
	for _, h := range harms {
		a.class[f.name][h.op+" "+how]++
	}
	for _, say := range c.finds {
		a.note(f, harms, seed, say)
	}
	return nil
}

var number = regexp.MustCompile(`0x[0-9a-f]+|\d+|"[^"]*"|/\S+`)

var everyVerb = regexp.MustCompile(`\b(cat( skip-rows| null-cells)?|recover|count|head|get( key)?|ls|convert( ` +
	`all)?|stats|advise|describe|explain)\b`)

// alike returns the key of a find, which is the same for finds with the same cause.
func alike(f *fixture, say string) string {
	law, rest, _ := strings.Cut(say, ": ")
	if law == "silent" || law == "stays" || law == "fail" || law == "conservation" { // whatever the verb
		for _, w := range []string{"is called", "rows came out", "columns of", "rows that were not there",
			"reported no loss", "another order", "other rows came out"} {
			if strings.Contains(rest, w) {
				return f.name + " " + law + ": " + w
			}
		}
		return f.name + " " + law
	}
	if law == "verdict" || law == "status" { // whatever the verb
		rest = everyVerb.ReplaceAllString(rest, "a verb")
	}
	rest = number.ReplaceAllString(rest, "#")
	return f.name + " " + law + ": " + rest[:min(len(rest), 120)]
}

// note records a find and shrinks the harms of the first find of its kind.
func (a *attack) note(f *fixture, harms []harm, seed uint64, say string) {
	key := alike(f, say)
	if a.finds[key] != nil {
		a.finds[key].n++
		return
	}
	a.finds[key] = &find{n: 1, say: say}
	harms = a.shrink(f, harms, seed, key)
	var w []string
	for _, h := range harms {
		w = append(w, h.String())
	}
	name := f.name
	if f.origin != "" {
		name = f.origin
	}
	a.finds[key].replay = fmt.Sprintf("%s %d %d | %s", name, f.seed, seed, strings.Join(w, "; "))
	fmt.Printf("find: %s\n   STOA_REPLAY='%s' go test ./internal/attack -run TestReplay -v\n", f.name+": "+say,
		a.finds[key].replay)
}

// shows reports whether harms still trigger the find.
func (a *attack) shows(f *fixture, harms []harm, seed uint64, key string) bool {
	c, err := a.try(f, harms, seed, false)
	return err == nil && c != nil && slices.ContainsFunc(c.finds, func(say string) bool { return alike(f, say) == key })
}

// shrink removes harms, and parts of them, as long as the find remains.
func (a *attack) shrink(f *fixture, harms []harm, seed uint64, key string) []harm {
	if strings.Contains(key, "no answer") {
		return harms
	}
	for i := 0; i < len(harms) && len(harms) > 1; {
		if less := slices.Delete(slices.Clone(harms), i, i+1); a.shows(f, less, seed, key) {
			harms = less
		} else {
			i++
		}
	}
	for i := range harms {
		for tried := 0; tried < 40; {
			shorter := harms[i].shorter()
			k := slices.IndexFunc(shorter, func(h harm) bool {
				tried++
				less := slices.Clone(harms)
				less[i] = h
				return a.shows(f, less, seed, key)
			})
			if k < 0 {
				break
			}
			harms[i] = shorter[k]
		}
	}
	return harms
}

// round runs cases on a table of each maker, generated from the seed, and on some real places.
func (a *attack) round(t *testing.T, seed uint64, cases int, until time.Time) {
	seen := map[string]bool{} // formats
	for i := range makers {
		m := &makers[i]
		of, _, _ := strings.Cut(m.name, "/")
		skip := testing.Short() && seen[of] && (uint64(i)+seed)%3 > 0
		if seen[of] = true; skip || !chosen(m.name) {
			continue
		}
		f, err := a.fixtureOf(m, seed)
		if refused, ok := err.(*errRefused); ok {
			a.refuse[m.name] = refused.say
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		a.cast(t, f, seed, cases, until)
	}
	a.realRound(t, seed, cases, until)
	for _, f := range a.made {
		if f == nil {
			continue
		}
		for _, g := range []*fixture{f, f.stale, f.other} {
			if g != nil {
				os.RemoveAll(g.dir)
			}
		}
	}
	clear(a.made)
}

// chosen reports whether STOA_ATTACK_ONLY selects a fixture or a format. The variable is a comma-separated list of
// prefixes of fixture names; without it, all are selected.
func chosen(name string) bool {
	only := os.Getenv("STOA_ATTACK_ONLY")
	return only == "" || slices.ContainsFunc(strings.Split(only, ","),
		func(w string) bool { return w != "" && strings.HasPrefix(name, w) })
}

// cast runs cases on f.
func (a *attack) cast(t *testing.T, f *fixture, seed uint64, cases int, until time.Time) {
	for k := range cases {
		if time.Now().After(until) {
			return
		}
		h := fnv.New32()
		fmt.Fprint(h, f.name, f.origin, seed, k) // different fixtures get different harms
		if err := a.one(f, uint64(h.Sum32())); err != nil {
			t.Errorf("%s, seed %d, case %d: %v", f.name, f.seed, k, err)
		}
	}
}

// report prints what was tried, and fails t for each find.
func (a *attack) report(t *testing.T) {
	fmt.Printf("%d cases; %d changed nothing that is read\n", a.cases, a.equal)
	for _, name := range slices.Sorted(maps.Keys(a.class)) {
		sum := map[string]int{}
		for k, n := range a.class[name] {
			_, how, _ := strings.Cut(k, " ")
			sum[how] += n
		}
		fmt.Printf("  %-22s %v\n", name, sum)
	}
	byHarm := map[string]map[string]int{}
	for _, c := range a.class {
		for k, n := range c {
			op, how, _ := strings.Cut(k, " ")
			if byHarm[op] == nil {
				byHarm[op] = map[string]int{}
			}
			byHarm[op][how] += n
		}
	}
	for _, op := range slices.Sorted(maps.Keys(byHarm)) {
		fmt.Printf("  %-22s %v\n", op, byHarm[op])
	}
	for _, v := range slices.Sorted(maps.Keys(a.seen)) {
		fmt.Printf("  %-22s %d\n", v, a.seen[v])
	}
	if reported := a.cases - a.equal; a.cases == 0 || reported*3 < a.cases {
		t.Errorf("only %[2]d of %[1]d cases changed anything that is read: expected a third or more", a.cases, reported)
	}
	for name, why := range a.refuse {
		if a.class[name] == nil {
			t.Errorf("%s: never written: %s", name, why)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.finds)) {
		f := a.finds[key]
		t.Errorf("%d× %s: %s\n   STOA_REPLAY='%s'", f.n, key, f.say, f.replay)
	}
}

// TestAttack runs a fixed small set of cases for each fixture; if STOA_ATTACK is a duration, it runs random cases for
// that long.
func TestAttack(t *testing.T) {
	s := os.Getenv("STOA_ATTACK")
	if s == "" {
		a := newAttack(build(t), t.TempDir())
		seed, err := strconv.ParseUint(cmp.Or(os.Getenv("STOA_SEED"), "8"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		cases := 2
		if testing.Short() {
			cases = 1
		}
		a.round(t, seed, cases, time.Now().Add(time.Hour))
		a.report(t)
		return
	}
	length, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano() % 1e9)
	if s := os.Getenv("STOA_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	a := newAttack(build(t), t.TempDir())
	fmt.Printf("seed %d\n", seed)
	for until := time.Now().Add(length); time.Now().Before(until); seed++ {
		a.round(t, seed, 10, until)
	}
	a.report(t)
}

// TestReplay replays cases, given one per line as a find prints them: FIXTURE SEED CASE | HARM; HARM.
func TestReplay(t *testing.T) {
	lines := strings.TrimSpace(os.Getenv("STOA_REPLAY"))
	if lines == "" {
		t.Skip("STOA_REPLAY has no case")
	}
	root := t.TempDir()
	if keep := os.Getenv("STOA_KEEP"); keep != "" {
		root = keep
	}
	a := newAttack(build(t), root)
	for line := range strings.Lines(lines) {
		t.Run(strings.TrimSpace(line), func(t *testing.T) { a.replay(t, strings.TrimSpace(line)) })
	}
}

func (a *attack) replay(t *testing.T, line string) {
	head, list, _ := strings.Cut(line, " | ")
	w := strings.Fields(head)
	if len(w) != 3 {
		t.Fatal("want FIXTURE SEED CASE | HARM; HARM")
	}
	seed, err := strconv.ParseUint(w[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(w[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	harms, err := parseHarms(list)
	if err != nil {
		t.Fatal(err)
	}
	f, err := a.named(w[0], seed)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.try(f, harms, number, true)
	if err != nil || c == nil {
		t.Fatalf("the harms do not fit: %v", err)
	}
	fmt.Println("whole:", f.at(f.dir), "harmed:", f.at(c.dir), f.reading, f.files, "touched:", c.touched)
	fmt.Println(c.status)
	for _, say := range c.finds {
		t.Error(say)
	}
}

// named returns the fixture with that name.
func (a *attack) named(name string, seed uint64) (*fixture, error) {
	for i := range makers {
		if makers[i].name == name {
			return a.fixtureOf(&makers[i], seed)
		}
	}
	if f := a.realFixture(name); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("there is no fixture %s", name)
}
