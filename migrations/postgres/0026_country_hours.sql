CREATE TABLE "country_hours" (
	"project_id" uuid NOT NULL,
	"prefix" text NOT NULL,
	"hour" bigint NOT NULL,
	"sends" bigint NOT NULL,
	"most" bigint NOT NULL,
	CONSTRAINT "country_hours_project_id_prefix_hour_pk" PRIMARY KEY("project_id","prefix","hour")
);
--> statement-breakpoint
CREATE INDEX "country_hours_by_hour" ON "country_hours" USING btree ("hour");