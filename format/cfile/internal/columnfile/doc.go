// Package columnfile is one open CFile (OpenFile): its blocks read and checked, the positional and the value index
// walked, the pages of a column, bloom files (OpenBloom) and delta files (OpenDelta). What a lost footer would say
// can come from options (ReadOptions).
package columnfile
