package guest

const (
	architecture = 0xc00000b7 // AUDIT_ARCH_AARCH64

	numberTgSigqueueinfo = 240
	numberPrlimit        = 261
	numberSetns          = 268
	numberPidfdOpen      = 434
	numberClone3         = 435
)
