module example.com/importer

go 1.26

require stoa v0.0.0

replace stoa => ../..
