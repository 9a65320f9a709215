/**
 * Libraries that only a second factor needs. They are loaded at their first use, because most servers
 * run for days without one and each library takes some megabytes of memory.
 */
export const otplib = (): typeof import("otplib") => require("otplib")
export const uqr = (): typeof import("uqr") => require("uqr")
