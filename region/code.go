package region

// CodeDoc explains a kind of finding. Codes never change their meaning.
type CodeDoc struct {
	Code     string   // "cfile.block.checksum"
	Severity Severity // of its findings
	Help     string   // what it means, in a sentence or two
}
