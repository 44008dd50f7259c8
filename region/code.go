package region

// CodeDoc documents a kind of finding. Codes never change their meaning.
type CodeDoc struct {
	Code     string   // "cfile.block.checksum"
	Severity Severity // of its findings
	Help     string   // its meaning, in a sentence or two
}
