package filters

import _ "embed"

//go:embed programs_amd64.bin
var programs string
