package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/andybalholm/brotli"
)

// packedPage holds the files of page, and words/fields.tsv, as an object of JSON, compressed.
//
//go:embed page.br
var packedPage []byte

var (
	unpackPage sync.Once
	pageText   map[string]string
)

// pageFiles returns these files by their names.
func pageFiles() map[string]string {
	unpackPage.Do(func() {
		if err := json.NewDecoder(brotli.NewReader(bytes.NewReader(packedPage))).Decode(&pageText); err != nil {
			panic(err)
		}
		readSentences(pageText["fields.tsv"])
	})
	return pageText
}
