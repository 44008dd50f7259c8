package layout

import "testing"

// TestDrifts: the columns of a schema agree with its history of added, dropped and changed columns; a single changed
// attribute, in the columns or in the history, is a contradiction.
func TestDrifts(t *testing.T) {
	col := func(id, name string) ColumnSchema {
		return ColumnSchema{ID: id, Name: name, Type: TypeInt, Default: []byte{1}}
	}
	gone := col("2", "b")
	gone.Invisible = true
	whole := func() TableSchema {
		return TableSchema{
			Columns: []ColumnSchema{col("1", "a"), gone, col("3", "c"), col("4", "e")},
			History: []Evolution{{}, {Added: []ColumnSchema{col("2", "b"), col("3", "c")}},
				{Removed: []ColumnSchema{col("2", "b")}}, {Added: []ColumnSchema{col("4", "d")}},
				{Added: []ColumnSchema{col("4", "e")}, Removed: []ColumnSchema{col("4", "d")}}},
		}
	}
	s := whole()
	if d := s.Drifts(); len(d) != 0 {
		t.Fatalf("a sound schema: expected no contradiction, found %+v", d)
	}
	s.Columns = append(s.Columns[:1], s.Columns[2:]...) // a dropped column need not be listed any more
	if d := s.Drifts(); len(d) != 0 {
		t.Fatalf("without the dropped column: expected no contradiction, found %+v", d)
	}
	for name, harm := range map[string]func(*TableSchema){
		"id of a column":           func(s *TableSchema) { s.Columns[2].ID = "7" },
		"id in the history":        func(s *TableSchema) { s.History[1].Added[1].ID = "7" },
		"name":                     func(s *TableSchema) { s.Columns[3].Name = "f" },
		"type":                     func(s *TableSchema) { s.Columns[2].Type = TypeLong },
		"default":                  func(s *TableSchema) { s.Columns[2].Default = nil },
		"a dropped column is seen": func(s *TableSchema) { s.Columns[1].Invisible = false },
		"a column is hidden":       func(s *TableSchema) { s.Columns[2].Invisible = true },
	} {
		s := whole()
		harm(&s)
		if len(s.Drifts()) == 0 {
			t.Errorf("%s: expected a contradiction, found none", name)
		}
	}
}

// TestDriftsOfParts: CarbonData renames a nested column with its parts, and drops it without naming them.
func TestDriftsOfParts(t *testing.T) {
	col := func(id, name string, invisible bool) ColumnSchema {
		return ColumnSchema{ID: id, Name: name, Type: TypeString, Invisible: invisible}
	}
	for _, x := range []struct {
		dropped, whole, part bool // dropped by the history; invisible
		sound                bool
	}{{true, true, true, true}, {false, false, true, false}, {false, true, true, false}, {false, false, false, true},
		{true, false, true, false}} {
		s := TableSchema{
			Columns: []ColumnSchema{col("1", "a", false), col("2", "n", x.whole), col("3", "n.val.b", x.part)},
			History: []Evolution{{Added: []ColumnSchema{col("2", "n", false), col("3", "n.val.b", false)},
				Removed: []ColumnSchema{col("2", "o", false), col("3", "o.val.b", false)}}},
		}
		if x.dropped {
			s.History = append(s.History, Evolution{Removed: []ColumnSchema{col("2", "n", false)}})
		}
		if got := len(s.Drifts()) == 0; got != x.sound {
			t.Errorf("%+v: sound %v, %+v", x, got, s.Drifts())
		}
	}
}
