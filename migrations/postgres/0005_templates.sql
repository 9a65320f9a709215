CREATE TABLE "template_versions" (
	"template_id" uuid NOT NULL,
	"version" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"content" text NOT NULL,
	"note" text,
	"created_by" text NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "template_versions_template_id_version_pk" PRIMARY KEY("template_id","version")
);
--> statement-breakpoint
CREATE TABLE "templates" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"status" text NOT NULL,
	"version" bigint NOT NULL,
	"published_version" bigint,
	"tags" text NOT NULL,
	"summary" text NOT NULL,
	"search_key" text NOT NULL,
	"tag_key" text NOT NULL,
	"channel_key" text NOT NULL,
	"partial_key" text NOT NULL,
	"layout_id" uuid,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL,
	"published_at" bigint
);
--> statement-breakpoint
CREATE INDEX "template_versions_by_project" ON "template_versions" USING btree ("project_id");--> statement-breakpoint
CREATE UNIQUE INDEX "templates_by_name" ON "templates" USING btree ("project_id","name");--> statement-breakpoint
CREATE INDEX "templates_by_project" ON "templates" USING btree ("project_id","id");