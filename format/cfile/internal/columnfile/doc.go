// Package columnfile opens a CFile (OpenFile), reads and checks its blocks, walks its positional and its value index,
// and decodes the pages of a column, bloom files (OpenBloom) and delta files (OpenDelta). If the footer is lost, its
// properties can be passed as options (ReadOptions).
package columnfile
