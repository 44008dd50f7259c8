// Package pred is the predicate of a scan: parsed from text, bound to a schema, used to skip what cannot match, and
// evaluated exactly.
//
//	e, err := pred.Parse("price > 3.5 and name like 'a%'")
//	b, err := pred.Bind(e, schema)                  // once a scan
//	v := b.Prune(func(path string) *pred.Bounds …)  // None, Some or All of these rows
//	sel, err := b.Eval(n, column, nil)              // the rows for which b is TRUE
//
// An Expr is a plain struct, a tree. It is serialized as JSON in the splits of a plan (see Expr and Value for the
// format).
//
// # Grammar
//
// This is the text of --where. Keywords are case-insensitive. White space between tokens, and "-- comment" up to the
// end of the line, is ignored.
//
//	expr      = conj { "or" conj } .
//	conj      = neg { "and" neg } .
//	neg       = "not" neg | term .
//	term      = value [ test ]                          // a value alone is a condition: column means column = true
//	test      = compare value
//	          | "is" [ "not" ] "null"
//	          | [ "not" ] "in" "(" [ value { "," value } ] ")"
//	          | [ "not" ] "between" value "and" value
//	          | [ "not" ] ( "like" | "ilike" ) value [ "escape" string ]
//	          | ( "~" | "~*" | "!~" | "!~*" ) value .
//	value     = sum { "||" sum } .
//	sum       = product { ( "+" | "-" ) product } .
//	product   = unary { ( "*" | "/" | "%" ) unary } .
//	unary     = ( "+" | "-" ) unary | primary { "::" type } .
//	primary   = "(" expr ")" | literal | column
//	          | name "(" [ expr { "," expr } ] ")"        // a function: see Functions
//	          | ( "cast" | "try_cast" ) "(" expr "as" type ")"
//	          | "case" [ expr ] { "when" expr "then" expr } [ "else" expr ] "end" .
//	type      = name [ "(" digits [ "," digits ] ")" ] .
//	compare   = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" .
//	column    = name { "." name } .
//	name      = ( letter | "_" ) { letter | digit | "_" }    // no keyword, unless after a point
//	          | '"' { any character; "" stands for " } '"' . // one name, even if there are points in it
//	literal   = "null" | "true" | "false" | number | string | hex
//	          | ( "date" | "time" | "timestamp" | "float" | "decimal" ) string .
//	number    = [ "+" | "-" ] ( digits [ "." [ digits ] ] | "." digits ) [ ( "e" | "E" ) [ "+" | "-" ] digits ] .
//	string    = "'" { any character; '' stands for ' } "'" .
//	hex       = ( "x" | "X" ) "'" { hexdigit hexdigit } "'" | "0x" { hexdigit hexdigit } .
//
// Keywords must be quoted as the first name of a column: and, between, false, in, is, like, not, null, or, true. not
// binds tighter than and, and tighter than or. Parentheses and not nest at most MaxDepth deep.
//
// A number without point and exponent is an integer; outside of int64 and uint64, or with a point, it is a decimal of
// at most 38 digits; with an exponent it is a float. A float literal whose magnitude is too large or too small for a
// float is refused. float 'NaN', float 'Infinity' and float '-Infinity' denote the values that are not finite.
//
// A date is [+-]YYYY-MM-DD with four or more digits for the year. A time is HH:MM[:SS[.fraction]] with up to nine
// digits after the point. A timestamp is a date, followed by T or a blank, a time, and nothing, Z or ±HH:MM; or it is
// a date alone. Without a zone it is UTC. Columns without a time zone are compared as if they were UTC, too.
//
// Two literals are not compared with each other, unless they are parts of larger values: that is taken for a mistake.
// Chains of operators are at most 1000 long.
//
// # Functions
//
//	abs round(x[, digits]) floor ceil                    of numbers; halves are rounded away from zero
//	lower upper trim ltrim rtrim (s[, characters])       of strings, character by character; trim cuts blanks
//	length(x)  len(x)                                    characters, bytes of binary, or elements of a list
//	substr(s, from[, count])                             from 1 on, or from the end if from is negative
//	starts_with ends_with contains (s, t)                also prefix, suffix
//	regexp_matches(s, re)  regexp_full_match(s, re)      as ~; the latter matches the whole
//	year quarter month day hour minute second            of dates and timestamps, in UTC
//	date_trunc('unit', x)  date(x)                       year quarter month week day hour minute second, in UTC
//	coalesce(x, …)  nullif(x, y)
//	any(list) all(list)                                  on one side of a comparison: of some element, of all
//	array_contains(list, x)                              also list_contains; nulls in the list are passed over
//
// ~ looks for a regular expression of RE2 (Go's) anywhere in a string, ~* regardless of case. ilike and lower fold case
// character by character. Patterns, units and digits must be known before the scan.
//
// Integers are computed with 64 bits whatever their column's type (uint64: as decimals), decimals with 38 digits;
// beyond that is an error that shows the place, as is a cast of what does not fit (try_cast: null). It is one only if
// the row is asked for: terms of and are evaluated from left to right, branches of case and coalesce only where they
// are taken. x / y is a float, also of integers. Division by zero and the remainder by zero are null. A float of 32
// bits stays one, except with one of 64 bits. Date ± integer is a date, date - date an integer.
//
// Types are bool, tinyint smallint int bigint and utinyint …, hugeint, float double, decimal(p, s), varchar, blob,
// date, time, timestamp (_s _ms _us _ns); and the names of Arrow, of which int8 has 8 bits.
//
// DuckDB gives the same answers (interop/pred asks it), except that: by its defaults x / 0 is infinite and x % 0 an
// error; it computes with the narrow type of a column, which overflows; integers are compared with floats exactly here;
// any of a null list is unknown here, and FALSE there; like has no escape character there; date_trunc of a date is a
// date here; numbers and texts are not compared here without a cast; and the zone of a timestamp literal is ignored
// there.
//
// # What formats can make use of
//
// Tests of a column with a literal are used with bounds, indexes and filters. So is what is equivalent to them, which
// Bind makes of: values without columns; year(x), date_trunc('unit', x), date(x) and cast(x as date) compared with a
// literal, which are ranges of x; starts_with, ends_with and contains, which are patterns; and the text at the
// beginning of x ~ '^text…'. Two columns are compared by their bounds. Rows in which a column is only null are skipped
// if the condition is unknown then. Anything else is evaluated for each row.
//
// # Comparing
//
// Logic is that of SQL, with three values. A test of a null cell, or with a null literal, is unknown, except is null;
// in is = joined by or, not in is != joined by and; not unknown is unknown; and, or as in SQL. A row is selected if the
// whole predicate is TRUE. On one point SQL systems disagree: here a null cell in an empty list is unknown, so that "x
// in ()" is never TRUE and "x not in ()" is TRUE whenever x is not null.
//
// A literal is compared with a cell by its exact value, whatever their types; it is never rounded or truncated: for an
// int8 column x < 1000 is TRUE for all cells but null, x = 3.5 for none, and x > 3.5 is x >= 4. There is one exception:
// a decimal or float literal against a float column means the nearest number of the column's type (so that 0.1 finds
// 0.1), provided that this number is neither zero nor infinite unless the literal is. Integers are not rounded.
//
// Floats, both literals and cells, have a total order: NaN is equal to NaN and greater than everything else, including
// +Infinity; -0.0 is equal to 0.0. So x > 3 is TRUE for NaN. Strings and binary are compared as unsigned bytes; for
// strings this is the order of code points. Booleans: false < true. Dates are midnight UTC when compared with
// timestamps. Date64 columns are instants in milliseconds. Durations are counted in the column's unit.
//
//	column                         literals it can be compared with
//	bool                           true, false
//	(u)int8…64, float, decimal     integer, decimal, float
//	duration                       integer, decimal, float
//	string, binary (any layout)    string, hex
//	date32, date64, timestamp      date, timestamp; a string that is one of them
//	time32, time64                 time; a string that is one
//	dictionary                     as its values
//	null                           any; the answer is always unknown
//	list                           none; any, all, array_contains, len, is null
//	map, struct, …                 none; only is null
//	union, run ends                none; not even that: they have no nulls of their own
//
// Anything else is an error of class Invalid.
//
// # Like
//
// % stands for any run of characters, including the empty one; _ for exactly one character (in binary columns one byte;
// in strings a byte that is not UTF-8 counts as one). The escape character makes the next character literal; it is the
// backslash, or the one given by escape; an empty text there means that there is none. A pattern must match the whole
// value. Matching is case-sensitive.
//
// # Columns
//
// A column is named by the names of its fields from the outermost in, joined with points; a name that is empty or
// contains a point or a quotation mark is quoted (see JoinPath, SplitPath). If a.b is not b in a struct a, it is a
// field "a.b", if there is one. Fields of structs can be named; where a parent is null, they are null. Fields below a
// list or map cannot, as they have no single value per row; but lists, maps and structs themselves can be tested with
// is null.
package pred
