package guest

const sysRenameat2 = 316
