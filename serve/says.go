package serve

import (
	"regexp"
	"strings"
)

// sentences are those of words/fields.tsv by family and name. Its lines are family, name and a sentence, parted by
// tabs: what the documents of the formats, and those in docs/formats, say about the structure of that name.
var sentences = map[[2]string]string{}

func readSentences(lines string) {
	for l := range strings.Lines(lines) {
		if f := strings.Split(strings.TrimRight(l, "\n"), "\t"); len(f) == 3 {
			sentences[[2]string{f[0], f[1]}] = f[2]
		}
	}
}

// families are the formats whose structures another one's sentences describe; the others describe themselves.
var families = map[string]string{"trevni-avro": "trevni", "kudu-wal": "kudu", "kudu-metadata": "kudu",
	"iceberg": "parquet", "delta": "parquet", "kudu-backup": "parquet"}

var (
	inBrackets = regexp.MustCompile(`\[\d+\]`)
	inParens   = regexp.MustCompile(`\(.*\)`)
)

// plainName is the name of a structure without its numbers: page[7] is page[], block(from row 128) is block().
func plainName(name string) string {
	return inParens.ReplaceAllString(inBrackets.ReplaceAllString(name, "[]"), "()")
}

// says returns what the documents of a format say about a structure; "" if nothing. A name with points, as that of a
// column's part in a footer, is also looked for by its last word.
func says(format, name string) string {
	pageFiles()
	if f, ok := families[format]; ok {
		format = f
	}
	name = plainName(name)
	words := []string{name}
	if k := strings.LastIndexByte(name, '.'); k >= 0 {
		words = append(words, name[k+1:])
	}
	of := []string{format, "*"}
	if format == "kudu" { // its blocks are column files
		of = []string{format, "cfile", "*"}
	}
	for _, family := range of {
		for _, w := range words {
			if s := sentences[[2]string{family, w}]; s != "" {
				return s
			}
		}
	}
	return ""
}
