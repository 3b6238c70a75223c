/* SPDX-License-Identifier: MIT */
/* checksum: a calculation over many small blocks whose result does not depend on who looks on. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

struct node {
	struct node *left, *right;
	uint64_t key, weight;
	char *text;
};

static uint64_t state = 0x243f6a8885a308d3u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static struct node *insert(struct node **at, uint64_t key)
{
	struct node *node;

	while (*at)
		at = key < (*at)->key ? &(*at)->left : &(*at)->right;
	node = calloc(1, sizeof(*node));
	OPAQUE(node);
	node->key = key;
	node->text = malloc(key % 61 + 1);
	memset(node->text, (int)(key % 251), key % 61 + 1);
	*at = node;
	return node;
}

/* By hand, since depth is unknown: rotates the tree into a list while it eats it. */
static uint64_t consume(struct node *root)
{
	uint64_t sum = 0xcbf29ce484222325u;

	while (root) {
		if (root->left) {
			struct node *left = root->left;
			root->left = left->right;
			left->right = root;
			root = left;
			continue;
		}
		struct node *next = root->right;
		for (size_t i = 0; i <= root->key % 61; i++)
			sum = (sum ^ (uint8_t)root->text[i]) * 0x100000001b3u;
		sum = (sum ^ root->weight) * 0x100000001b3u;
		free(root->text);
		free(root);
		root = next;
	}
	return sum;
}

int main(void)
{
	uint64_t sum = 0;

	target_ready();
	for (int round = 0; round < 10; round++) {
		struct node *root = NULL;
		for (int i = 0; i < 400; i++)
			insert(&root, next_random() % 100000)->weight = next_random();
		sum = sum * 31 + consume(root);
	}
	target_say("checksum", sum);
	target_say("heap.size.count", 8000);
	target_say("heap.transient.count", 8000);
	target_say("heap.impacting.count", 0);
	target_done();
	return 0;
}
