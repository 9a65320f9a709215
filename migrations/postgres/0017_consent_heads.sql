CREATE TABLE "consent_heads" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"sealed" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "consent_heads_by_project" ON "consent_heads" USING btree ("project_id","id");