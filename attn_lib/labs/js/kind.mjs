/** The Python class of a folder's lab: score_scale holds ScoreScaleLab. */
export const kind = (folder) => `${folder.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase())}Lab`;
