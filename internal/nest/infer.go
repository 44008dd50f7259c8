package nest

import "slices"

// Kind is the repetition of a step of a path in Dremel's data model.
type Kind uint8

const (
	Required Kind = iota
	Optional
	Repeated
	noKind
)

// levels returns the number of definition and repetition levels that a step of a kind adds.
func (k Kind) levels() (def, rep int) {
	switch k {
	case Optional:
		return 1, 0
	case Repeated:
		return 1, 1
	}
	return 0, 0
}

// Path is a column about which only the path, the maximum levels, and perhaps facts about its entries are known.
type Path struct {
	Steps          []string
	MaxDef, MaxRep int
	Seen           *Seen // nil if its entries have not been examined
}

// Step is a name in the paths of columns.
type Step struct {
	Name     string
	Kind     Kind
	Column   int // of a leaf; -1 for a group
	Children []*Step
	// Open, of the first step of a path, means that other kinds of the steps below would result in these levels as
	// well.
	Open bool

	leaves  []*Path           // leaves below it, or the leaf itself
	answers map[[2]int]answer // by the levels used above it
}

// answer is the first kind that fits, and the number of kinds that do, counted up to 2; noKind if none does.
type answer struct {
	kind Kind
	many int
}

// search limits the steps of the search for an answer, because names and levels come from the file.
type search struct {
	left       int
	lists      func(s *Step, depth int) bool
	ignoreSeen bool // the entries are not considered
}

const maxSteps = 1 << 22 // about a second; ten thousand columns of ten steps need a tenth of it

// Infer derives a schema from the columns' paths. Their maximum levels determine how many steps of a path are optional
// or repeated, but not which ones. Columns of one group give additional information, and so do entries: a list
// continues only where it has items, and columns below one step agree on everything above it. Entries that allow no
// answer at all are damaged, and are ignored. If several answers remain, steps are required if possible, and repeated
// as far down as possible; but steps for which lists returns true, because they are named like lists, are repeated if
// possible. ok is false if there is no answer, or if the search takes too long.
func Infer(cols []Path, lists func(s *Step, depth int) bool) (roots []*Step, ok bool) {
	root := &Step{Column: -1}
	for i := range cols {
		root.grow(i, &cols[i])
	}
	s := &search{left: maxSteps, lists: lists}
	for _, r := range root.Children {
		if r.solve(s, 0, 0, 0).kind == noKind && s.left >= 0 {
			again := &search{left: s.left, lists: lists, ignoreSeen: true}
			r.clearAnswers()
			r.solve(again, 0, 0, 0)
			s.left = again.left
		}
		if s.left < 0 || r.answers[[2]int{}].kind == noKind {
			return nil, false
		}
		r.Open = r.choose(0, 0)
	}
	return root.Children, true
}

// grow adds column i below the root.
func (s *Step) grow(i int, p *Path) {
	for k, name := range p.Steps {
		last := k == len(p.Steps)-1
		n := len(s.Children)
		if n == 0 || s.Children[n-1].Name != name || s.Children[n-1].Column >= 0 || last {
			s.Children = append(s.Children, &Step{Name: name, Column: -1})
			n++
		}
		s = s.Children[n-1]
		s.leaves = append(s.leaves, p)
		if last {
			s.Column = i
		}
	}
}

// Columns appends the columns at and below s to to.
func (s *Step) Columns(to []int) []int {
	if s.Column >= 0 {
		return append(to, s.Column)
	}
	for _, c := range s.Children {
		to = c.Columns(to)
	}
	return to
}

// clearAnswers discards the answers found so far.
func (s *Step) clearAnswers() {
	s.answers = nil
	for _, c := range s.Children {
		c.clearAnswers()
	}
}

// solve finds the kinds of s that are consistent with the levels of everything below, given the levels used above.
func (s *Step) solve(in *search, def, rep, depth int) answer {
	if a, ok := s.answers[[2]int{def, rep}]; ok {
		return a
	}
	a := answer{kind: noKind}
	order := [3]Kind{Required, Optional, Repeated}
	if in.lists(s, depth) {
		order = [3]Kind{Repeated, Required, Optional}
	}
	for _, k := range order {
		d, r := k.levels()
		if a.many < 2 && s.fits(in, k, def+d, rep+r, depth) {
			if a.many++; a.many == 1 {
				a.kind = k
			}
		}
	}
	if s.answers == nil {
		s.answers = map[[2]int]answer{}
	}
	s.answers[[2]int{def, rep}] = a
	return a
}

// choose applies the answers that were found, and reports whether other answers exist.
func (s *Step) choose(def, rep int) (open bool) {
	a := s.answers[[2]int{def, rep}]
	s.Kind, open = a.kind, a.many > 1
	d, r := a.kind.levels()
	for _, c := range s.Children {
		if c.choose(def+d, rep+r) {
			open = true
		}
	}
	return open
}

// fits reports whether everything below s can be solved if s is of kind k, with def and rep levels used down to it.
func (s *Step) fits(in *search, k Kind, def, rep, depth int) bool {
	if in.left--; in.left < 0 || depth > maxDepth {
		return false
	}
	if !in.ignoreSeen && !s.allowed(in, k, def, rep) {
		return false
	}
	if s.Column >= 0 {
		return def == s.leaves[0].MaxDef && rep == s.leaves[0].MaxRep
	}
	for _, c := range s.Children {
		if c.solve(in, def, rep, depth+1).kind == noKind {
			return false
		}
	}
	return true
}

// allowed reports whether the entries seen below s are possible if s is of kind k.
func (s *Step) allowed(in *search, k Kind, def, rep int) bool {
	var first *uint64
	in.left -= len(s.leaves) / 16
	for _, l := range s.leaves {
		switch {
		case def > l.MaxDef || rep > l.MaxRep:
			return false
		case l.Seen == nil:
			continue
		case k == Repeated && int(l.Seen.minDef[rep]) < def:
			return false
		}
		places := l.Seen.places(def, rep)
		if first != nil && places != nil && *places != *first {
			return false
		}
		if places != nil {
			first = places
		}
	}
	return true
}

// Seen summarizes the information in the entries of a column about the kinds of the steps of its path.
type Seen struct {
	maxDef, maxRep int
	last           byte
	minDef         []byte // by repetition level: the lowest definition level before or at an entry with it
	// by repetition and definition level, of the places down to there; nil if not requested, or if entries are unknown
	sums []uint64
}

// NewSeen returns an empty summary. With sums, columns can be compared with each other.
func NewSeen(maxDef, maxRep int, sums bool) *Seen {
	s := &Seen{maxDef: maxDef, maxRep: maxRep, minDef: slices.Repeat([]byte{255}, maxRep+1)}
	if sums {
		s.sums = make([]uint64, (maxRep+1)*(maxDef+1))
	}
	return s
}

// Work estimates the number of steps needed to add an entry.
func (s *Seen) Work() int64 { return 1 + int64(len(s.sums)) }

// Add adds the next entries. Their levels must not exceed the maximum.
func (s *Seen) Add(def, rep []byte) {
	const prime = 1099511628211
	wide := s.maxDef + 1
	for i, d := range def {
		r := rep[i]
		s.minDef[r] = min(s.minDef[r], s.last, d)
		s.last = d
		for p := int(r); p <= s.maxRep && s.sums != nil; p++ {
			row := s.sums[p*wide : (p+1)*wide]
			for g := range row {
				row[g] = (row[g] + uint64(r)<<8 + uint64(min(int(d), g)) + 1) * prime
			}
		}
	}
}

// Skip records that unknown entries follow.
func (s *Seen) Skip() { s.last, s.sums = 255, nil }

// places returns the sum over the levels down to def and rep.
func (s *Seen) places(def, rep int) *uint64 {
	if s.sums == nil {
		return nil
	}
	return &s.sums[rep*(s.maxDef+1)+def]
}
