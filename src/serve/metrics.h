/* SPDX-License-Identifier: MIT */
/* metrics.h: figures of the processes that are watched, in Prometheus' text format (version 0.0.4). */
#ifndef MW_SERVE_METRICS_H
#define MW_SERVE_METRICS_H

#include "session/session.h"

#include <pthread.h>

struct mw_metrics_process;

/* The first thread brings it up to date, any other may render it. */
struct mw_metrics {
	pthread_mutex_t lock;
	struct mw_metrics_process *items;
	size_t count, capacity;
	double own_cpu_s;
};

void mw_metrics_init(struct mw_metrics *metrics);
void mw_metrics_deinit(struct mw_metrics *metrics);
/* All figures as they are now. Where there is no memory they stay what they were. */
void mw_metrics_update(struct mw_metrics *metrics, const struct mw_session *session);
/* malloc'ed; NULL: no memory. */
char *mw_metrics_render(struct mw_metrics *metrics, size_t *size);

#endif
