package guest

const (
	architecture = 0xc000003e // AUDIT_ARCH_X86_64

	numberTgSigqueueinfo = 297
	numberPrlimit        = 302
	numberSetns          = 308
	numberPidfdOpen      = 434
	numberClone3         = 435
)
