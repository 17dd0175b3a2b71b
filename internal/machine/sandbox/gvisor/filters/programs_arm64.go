package filters

import _ "embed"

//go:embed programs_arm64.bin
var programs string
