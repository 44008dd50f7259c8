module stoa

go 1.26
