package gvisor

// CloseStrays is closeStrays, for a process of a test's own.
var CloseStrays = closeStrays
