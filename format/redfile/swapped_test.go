package redfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"stoa"
	"stoa/store"
)

// TestSwappedAndCut: two ranges of a real file of generation A change places, and its metadata is damaged, so that
// recovery assembles row groups from what it finds. A column that comes too far after the one before it is of another
// row group: each row that recovery gives was there. STOA_ROUNDS and STOA_SEED try others.
func TestSwappedAndCut(t *testing.T) {
	whole, err := os.ReadFile("../../corpus/redfile/red1a/a_optional_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	var starts []int
	for n, err := range stoa.Describe(t.Context(), "t", stoa.DescribeOptions{Pages: true,
		OpenOptions: stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"t": whole})}}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.At.Len > 20 && n.At.Off > 0 {
			starts = append(starts, int(n.At.Off))
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	right, all := map[string]bool{}, 0
	rowsIn(t, whole, func(cells []string) {
		for some := range 1 << len(cells) { // damage may cost columns
			right[chosen(cells, some)] = true
		}
		all++
	})
	if all != 300 || len(starts) < 30 {
		t.Fatalf("%d rows and %d structures", all, len(starts))
	}
	given := 0
	try := func(a, b, n, at int) {
		bad := slices.Insert(bytes.Clone(whole), at, whole[at])
		first := bytes.Clone(bad[a : a+n])
		copy(bad[a:a+n], bad[b:b+n])
		copy(bad[b:b+n], first)
		rowsIn(t, bad, func(cells []string) {
			if given++; !right[chosen(cells, -1)] {
				t.Errorf("%d bytes at %d and %d, and a byte at %d: %s was not there", n, a, b, at, cells)
			}
		})
	}
	for a := 890; a < 1000; a += 3 { // in the second column of the first row group, and in the first of the second
		for b := 1830; b < 2130; b += 7 {
			n := 475 - (a-902)/2
			if !aligned(starts, a, b, n) {
				try(a, b, n, 4356)
			}
		}
	}
	for _, c := range [][4]int{
		{902, 1896, 475, 4356},
		{1821, 3319, 786, 5217}, {355, 1600, 639, 5252}, // a chunk's metadata has been moved: it seems large
		{482, 2238, 370, 4461},                         // num_values is damaged
		{723, 1936, 538, 5043}, {832, 4135, 258, 5052}, // a page's body and the next header look like a header
	} {
		try(c[0], c[1], c[2], c[3])
	}
	rounds := 8000
	if testing.Short() {
		rounds = 500
	}
	seed := uint64(304)
	if n, err := strconv.Atoi(os.Getenv("STOA_ROUNDS")); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64); err == nil {
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		a, b := 4+r.IntN(len(whole)-300), 4+r.IntN(len(whole)-300)
		a, b = min(a, b), max(a, b)
		n := min(b-a, 1+r.IntN(800), len(whole)-120-b)
		if n > 0 && !aligned(starts, a, b, n) {
			try(a, b, n, 4200+r.IntN(len(whole)-4201))
		}
	}
	t.Logf("%d rows came out", given)
	if given == 0 {
		t.Error("no rows came out")
	}
}

// aligned reports whether a structure in the first range, or whose header reaches into it, begins within a few bytes of
// where one in the second range does: a reader goes on after so few damaged bytes.
func aligned(starts []int, a, b, n int) bool {
	const few = 16
	return slices.ContainsFunc(starts, func(s int) bool {
		i, _ := slices.BinarySearch(starts, s-a+b-few)
		return s > a-64 && s < a+n+few && i < len(starts) && starts[i] <= s-a+b+few
	})
}

// chosen joins the cells whose bits are set.
func chosen(cells []string, some int) (text string) {
	for k, c := range cells {
		if some>>k&1 == 1 {
			text += c + " "
		}
	}
	return text
}

// rowsIn recovers a file and gives the cells of each row that are not null, as texts NAME=VALUE.
func rowsIn(t *testing.T, file []byte, row func([]string)) {
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Recover: true,
		Tree: store.NewMemory(map[string][]byte{"t": file})})
	if err != nil {
		return
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.NullCells}) {
		if err != nil {
			return
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for k, c := range b.Columns() {
				if !c.IsNull(i) {
					cells = append(cells, fmt.Sprint(b.ColumnName(k), "=", c.ValueStr(i)))
				}
			}
			slices.Sort(cells) // recovery may find the columns in another order
			row(cells)
		}
	}
}
