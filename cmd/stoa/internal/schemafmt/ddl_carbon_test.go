package schemafmt

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// TestNamesInProperties: properties name only columns of the table. The first value is what CarbonData 2.3.0 makes of a
// table with an array arr by ADD COLUMNS, CHANGE arr r1 and DROP COLUMNS; it refuses a CREATE TABLE with it.
func TestNamesInProperties(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "r1", Type: arrow.ListOf(arrow.BinaryTypes.String)}, {Name: "N2", Type: arrow.BinaryTypes.String}}, nil)
	for value, want := range map[string]string{
		"r1,arr.val,n1,": `'local_dictionary_include' = 'r1'`,
		"n2, R1":         `'local_dictionary_include' = 'n2,R1'`,
		"arr,arr.val,":   "",
		",":              "",
	} {
		l := format.Layout{Properties: map[string]string{"LOCAL_DICTIONARY_INCLUDE": value}}
		got := Ddl(sc, "t", l, &carbonData)
		if want == "" && strings.Contains(got, "TBLPROPERTIES") || !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

// TestComments: comments are string literals as Spark's parser unescapes them, after the type of a column and after
// the columns. CarbonData 2.3.0 makes a table with these comments of the statement.
func TestComments(t *testing.T) {
	noted := func(name string, t arrow.DataType, comment string) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true,
			Metadata: arrow.NewMetadata([]string{format.MetaComment}, []string{comment})}
	}
	sc := arrow.NewSchema([]arrow.Field{noted("id", arrow.PrimitiveTypes.Int32, "the key"),
		noted("a", arrow.ListOf(arrow.BinaryTypes.String), "it's"),
		noted("n", arrow.BinaryTypes.String, "\\d \"é\"\nx"),
		noted("e", arrow.BinaryTypes.String, ""), noted("p", arrow.BinaryTypes.String, "part")}, nil)
	l := format.Layout{Partitions: []string{"p"}, Properties: map[string]string{"comment": `the table's \ "x"`}}
	want := "CREATE TABLE `t` (\n  `id` INT COMMENT 'the key',\n  `a` ARRAY<STRING> COMMENT 'it\\'s',\n" +
		"  `n` STRING COMMENT '\\\\d \"é\"\\nx',\n  `e` STRING\n)\nCOMMENT 'the table\\'s \\\\ \"x\"'\n" +
		"PARTITIONED BY (`p` STRING COMMENT 'part')\nSTORED AS carbondata;\n"
	if got := Ddl(sc, "t", l, &carbonData); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Ddl(sc, "t", l, &DuckDB); strings.Contains(got, "COMMENT") {
		t.Errorf("DuckDB has no such clause: %s", got)
	}
}
