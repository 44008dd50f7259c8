// Package columnfile opens a CFile (OpenFile), reads and checks its blocks, walks its positional and its value index,
// and decodes the pages of a column, bloom files (OpenBloom) and delta files (OpenDelta). The properties in a lost
// footer can be passed as options (ReadOptions).
package columnfile
