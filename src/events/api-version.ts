/** Of the payload of every event; an endpoint keeps the version it was created with. */
export const API_VERSION = "2026-02-01"
