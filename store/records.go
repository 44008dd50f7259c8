package store

// The names of what a run that writes a large table has recorded, for another run that goes on with it.
const (
	RecordsDir  = "_stoa"   // the directory of the records, in that of the table
	RecordsMark = "begun"   // an object in it that says that a run has begun
	RecordExt   = ".record" // not .json, as which what lies beside a table is read
)
