module example.org/report

go 1.19
