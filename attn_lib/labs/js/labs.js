// Every lab by the name of its Python class.
import AttentionLab from "./attention_lab.js";
import ContributionLab from "./contribution_lab.js";
import CostLab from "./cost_lab.js";
import HeadsLab from "./heads_lab.js";
import LookupLab from "./lookup_lab.js";
import MaskLab from "./mask_lab.js";
import PositionLab from "./position_lab.js";
import ScoreScaleLab from "./score_scale_lab.js";
import TilingLab from "./tiling_lab.js";
import TrainingLab from "./training_lab.js";

export const labs = { AttentionLab, ContributionLab, CostLab, HeadsLab, LookupLab, MaskLab, PositionLab, ScoreScaleLab, TilingLab, TrainingLab };
