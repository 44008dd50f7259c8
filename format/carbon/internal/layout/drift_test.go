package layout

import "testing"

// TestDrifts: whatever history of adding, dropping and changing columns a schema has, its columns fit it; and where a
// word of one of them is another, in the columns or in the history, they do not.
func TestDrifts(t *testing.T) {
	col := func(id, name string) ColumnSchema {
		return ColumnSchema{Id: id, Name: name, Typ: TypeInt, Def: []byte{1}}
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
		t.Fatalf("whole, yet %+v", d)
	}
	s.Columns = append(s.Columns[:1], s.Columns[2:]...) // what was dropped may be gone altogether
	if d := s.Drifts(); len(d) != 0 {
		t.Fatalf("without the dropped column: %+v", d)
	}
	for name, harm := range map[string]func(*TableSchema){
		"id of a column":           func(s *TableSchema) { s.Columns[2].Id = "7" },
		"id in the history":        func(s *TableSchema) { s.History[1].Added[1].Id = "7" },
		"name":                     func(s *TableSchema) { s.Columns[3].Name = "f" },
		"type":                     func(s *TableSchema) { s.Columns[2].Typ = TypeLong },
		"default":                  func(s *TableSchema) { s.Columns[2].Def = nil },
		"a dropped column is seen": func(s *TableSchema) { s.Columns[1].Invisible = false },
		"a column is hidden":       func(s *TableSchema) { s.Columns[2].Invisible = true },
	} {
		s := whole()
		harm(&s)
		if len(s.Drifts()) == 0 {
			t.Errorf("%s: nothing is told", name)
		}
	}
}
